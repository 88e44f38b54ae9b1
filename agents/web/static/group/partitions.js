// A group's partitions: verdict, lag, and assigned member.

import { cells, more as declared } from "../shell/declared.js";
import { h } from "../shell/dom.js";
import { ago, count, duration, known, naturally } from "../shell/format.js";
import { more, portion, sortableHead, sorted } from "../shell/table.js";
import { age, greatestFirst, status, worstFirst } from "../overview/status.js";

const SHOWN = 20;
/** Unchanged end offsets are published once a minute. */
const OLD_MS = 150_000;
const COLUMNS = () => [
  { id: "partition", name: "Partition", compare: (a, b) => naturally(a.topic, b.topic) || a.partition - b.partition },
  { id: "status", name: "Status", compare: (a, b) => worstFirst(judged(a), judged(b)) },
  { id: "lag", name: "Lag", number: true, compare: greatestFirst("lag") },
  { id: "time", name: "In time", number: true, compare: greatestFirst("lag_seconds"), title: "the age of its oldest unread record" },
  { id: "committed", name: "Committed", number: true, spare: true, compare: greatestFirst("committed") },
  { id: "end", name: "Log's end", number: true, spare: true, compare: greatestFirst("end_offset") },
  ...declared("partitions"),
  { id: "member", name: "Member", compare: (a, b) => naturally(owner(a), owner(b)) },
];

const owner = (each) => each.client_id ?? each.member ?? "";
const judged = (each) => ({ ...each, status: each.verdict });

/** Describe the partitions that match the query, the worst first unless it sorts otherwise. */
export function partitions(state, ui, nowMs) {
  const { query } = ui;
  const all = state.partitions ?? [];
  const find = (query.get("find") ?? "").toLowerCase();
  const found = all.filter((each) => `${each.topic}-${each.partition} ${owner(each)} ${each.host ?? ""} ${each.verdict ?? ""}`
    .toLowerCase().includes(find));
  const rows = sorted(found, COLUMNS(), query.get("sort"));
  const shown = rows.slice(0, portion(query, "rows", SHOWN));
  return h("section", { key: "partitions", class: "panel", "aria-labelledby": "partitions" },
    h("div", { class: "tools" },
      h("h2", { id: "partitions" }, "Partitions", h("span", { class: "quiet" }, ` ${count(all.length + (state.partitions_more ?? 0))}`)),
      all.length > 0 && h("input", { type: "search", "data-search": "find", value: query.get("find") ?? "",
        placeholder: "Find a partition or member", "aria-label": "Find a partition or a member" })),
    shown.length
      ? h("div", { class: "scroll" }, h("table", { class: "rows partitions" },
        sortableHead(COLUMNS(), query.get("sort") ?? "", "sort"),
        h("tbody", null, shown.map((each) => row(each, nowMs)))))
      : h("p", { class: "quiet" }, all.length ? "No partition matches." : "The group has committed on no partition, and is assigned none."),
    more(shown.length, rows.length, "rows", 100),
    state.partitions_more > 0 && h("p", { class: "quiet" },
      `${count(state.partitions_more)} more, none of them worse than these; caughtup lag GROUP shows all.`));
}

/**
 * Return the log end. Ends are listed each second, commits are read at once: a commit beyond the end
 * is newer, unless the verdict says that the log was truncated.
 */
function end(each, nowMs) {
  const newer = known(each.end_offset) && each.committed > each.end_offset && each.verdict !== "rewound";
  return newer
    ? h("td", { class: "number spare soft", title: `${count(each.end_offset)} when it was listed${
      known(each.as_of_ms) ? `, ${ago(each.as_of_ms, nowMs)}` : ""}: the commit is newer` }, `≥ ${count(each.committed)}`)
    : h("td", { class: "number spare" }, count(each.end_offset));
}

function row(each, nowMs) {
  const old = known(each.as_of_ms) && nowMs - each.as_of_ms > OLD_MS;
  const because = each.verdict !== "ok" && each.why;
  return h("tr", { key: `${each.topic}-${each.partition}` },
    h("td", { class: "name fixed" }, h("bdi", null, `${each.topic}-${each.partition}`),
      because && h("span", { class: "because" }, because)),
    h("td", { class: "together", title: each.why || null }, status(each.verdict)),
    h("td", { class: `number${old ? " soft" : ""}`, title: known(each.as_of_ms) ? `the log's end was listed ${ago(each.as_of_ms, nowMs)}` : null },
      count(each.lag), old && h("span", { class: "quiet" }, `, ${duration((nowMs - each.as_of_ms) / 1000)} old`)),
    h("td", { class: "number" }, age(each)),
    h("td", { class: "number spare" }, count(each.committed)),
    end(each, nowMs),
    cells("partitions", each),
    h("td", { class: "member" }, owner(each) ? h("bdi", { title: each.member ?? null }, owner(each)) : h("span", { class: "unsure" }, "no member"),
      each.host && h("span", { class: "quiet" }, ` ${each.host}`)));
}
