// Every group: its verdict and reason, its lag, and the lag's recent course.

import { toGroup } from "../shell/address.js";
import { cells, look, more as declared, worst } from "../shell/declared.js";
import { h } from "../shell/dom.js";
import { ago, count, countdown, known, naturally, plural, short } from "../shell/format.js";
import { more, portion, sortableHead, sorted } from "../shell/table.js";
import { sparkline } from "./sparkline.js";
import { age, greatestFirst, lasting, status, worstFirst } from "./status.js";

const SHOWN = 30;
const KINDS = { streams: "Kafka Streams", connect: "Connect" };
const COLUMNS = () => [
  { id: "group", name: "Group", compare: (a, b) => naturally(a.group, b.group) },
  { id: "status", name: "Status", compare: worstFirst },
  { id: "lag", name: "Lag", number: true, compare: greatestFirst("lag") },
  { id: "time", name: "In time", number: true, compare: greatestFirst("lag_seconds"), title: "the age of its oldest unread record" },
  ...declared("groups"),
  { id: "recent", name: "Recent lag", spare: true },
];

const isKind = (each, kind) => (kind === "streams" ? each.application : each.connect) !== undefined;

/** Describe the groups that match the query, the worst first unless it sorts otherwise. */
export function groups(state, ui, nowMs) {
  const { query } = ui;
  const all = state.groups ?? [];
  const find = (query.get("find") ?? "").toLowerCase();
  const own = all.filter((each) => each.own);
  const shownOwn = query.get("own") === "1" || find !== "";
  const counted = shownOwn ? all : all.filter((each) => !each.own);
  const wanted = counted
    .filter((each) => each.group.toLowerCase().includes(find))
    .filter((each) => !query.has("kind") || isKind(each, query.get("kind")));
  const found = wanted.filter((each) => !query.has("status") || (each.status ?? "unknown") === query.get("status"));
  const rows = sorted(found, COLUMNS(), query.get("sort") ?? "status");
  const shown = rows.slice(0, portion(query, "rows", SHOWN));
  const largest = Math.max(0, ...shown.map((each) => each.lag ?? 0));
  return h("section", { key: "groups", class: "panel", "aria-labelledby": "groups" },
    h("div", { class: "tools" },
      h("h2", { id: "groups" }, "Groups", h("span", { class: "quiet" }, ` ${count(counted.length + (state.groups_more ?? 0))}`)),
      h("input", { type: "search", "data-search": "find", value: query.get("find") ?? "", placeholder: "Find a group",
        "aria-label": "Find a group" })),
    all.length > 0 && filters(wanted, counted, query, state.groups_more > 0 ? state.statuses : undefined),
    shown.length
      ? h("div", { class: "scroll" }, h("table", { class: "rows groups" },
        sortableHead(COLUMNS(), query.get("sort") ?? "status"),
        h("tbody", null, shown.map((each) => about(each, largest, nowMs)))))
      : h("p", { class: "quiet" }, all.length ? "No group matches."
        : state.ready ? "No group has committed yet." : "Not read yet."),
    more(shown.length, rows.length, "rows", 100),
    state.groups_more > 0 && h("p", { class: "quiet" },
      `${count(state.groups_more)} more, none of them worse than these; the search looks through all groups.`),
    own.length > 0 && find === "" && h("p", { class: "quiet" },
      h("button", { type: "button", "data-choose": "own", "data-value": shownOwn ? "" : "1", "aria-pressed": String(shownOwn) },
        `${plural(own.length, "group")} of caughtup's own`)),
    notTold(state.groups_not_told));
}

/** Buttons that filter groups by verdict or kind; `statuses` also counts groups that were left out. */
function filters(wanted, counted, query, statuses) {
  const byStatus = Map.groupBy(wanted, (each) => each.status ?? "unknown");
  const number = (verdict) => count(statuses?.[verdict] ?? byStatus.get(verdict)?.length ?? 0);
  const verdicts = worst("lag").filter((verdict) => byStatus.has(verdict) || query.get("status") === verdict);
  const kinds = Object.keys(KINDS).filter((kind) => counted.some((each) => isKind(each, kind)) || query.get("kind") === kind);
  return h("div", { class: "filters", role: "group", "aria-label": "Groups shown" },
    verdicts.map((verdict) => filter("status", verdict, query, [status(verdict), ` ${number(verdict)}`])),
    kinds.map((kind) => filter("kind", kind, query, [
      KINDS[kind], h("span", { class: "quiet" }, ` ${count(counted.filter((each) => isKind(each, kind)).length)}`)])));
}

function filter(choice, value, query, said) {
  const pressed = query.get(choice) === value;
  return h("button", { key: `${choice} ${value}`, type: "button", "data-choose": choice, "data-value": pressed ? "" : value,
    "aria-pressed": String(pressed) }, said);
}

/** Describe how many groups are left out, and why; nothing if none are. */
function notTold(counts) {
  const said = [
    counts?.ignored && `${plural(counts.ignored, "group")} ignored by the settings`,
    counts?.folded && `${count(counts.folded)} of caughtup's own and of Spark's drivers hidden`,
    counts?.limited && `${count(counts.limited)} with metrics by topic or by group only`,
  ].filter(Boolean);
  return said.length > 0 && h("p", { class: "quiet" }, `${said.join(", ")}.`);
}

/** Describe a group in two rows: its figures; its kind and, if its verdict is bad, the reason. */
function about(each, largest, nowMs) {
  const why = each.status !== "ok" && each.why;
  const href = toGroup(each.group);
  const name = h("bdi", null, each.group);
  const lag = known(each.lag) ? count(each.lag) : known(each.lag_at_least) ? `≥ ${count(each.lag_at_least)}` : count(null);
  return [
    h("tr", { key: `group ${each.group}` },
      h("td", { class: "name fixed" }, href ? h("a", { href }, name) : name),
      h("td", { class: "together", title: each.why ?? null }, status(each.status)),
      h("td", { class: "number lag" }, h("b", null, lag),
        h("span", { class: "progress", "--share": largest ? ((each.lag ?? 0) / largest).toFixed(3) : 0 })),
      h("td", { class: "number", title: "the age of its oldest unread record" }, age(each)),
      cells("groups", each),
      h("td", { class: "spare" }, sparkline(each.recent, "Recent lag"))),
    h("tr", { key: `about ${each.group}`, class: "about" }, h("td", { colspan: COLUMNS().length },
      why && h("span", { class: "why-so" }, lasting(each, nowMs), known(each.since_ms) && ": ", why), " ", h("span", { class: "quiet" }, kind(each, nowMs)),
      each.application && streams(each.application, nowMs), each.connect && connect(each.connect))),
  ];
}

/**
 * Return a group's kind, size and generation (classic, 2 members, 12 partitions, generation 4), for a
 * Spark query its last committed batch (spark, 12 partitions, batch 41, 8 s ago).
 */
export const kind = (each, nowMs) => [
  each.group_type,
  known(each.members) && plural(each.members, "member"),
  known(each.partitions) && plural(each.partitions, "partition"),
  known(each.generation) && `generation ${each.generation}`,
  known(each.batch) && `batch ${each.batch}`,
  known(each.batch_ms) && ago(each.batch_ms, nowMs),
].filter(Boolean).join(", ");

function streams({ clients, tasks, copies, result, probing_due_ms: due, movements }, nowMs) {
  const chips = [["warmup", "warming up"], ["restoring", "restoring"]].map(([role, said]) => copies?.[role] > 0
    && h("span", { key: role, class: `chip ${role}` }, `${short(copies[role])} ${said}`));
  return h("span", { class: "parts" }, h("b", null, "Streams"),
    ` ${plural(tasks, "task")}${known(clients) ? ` on ${plural(clients, "client")}` : ""}`, chips,
    movements > 0 && h("span", null, `${plural(movements, "movement")} recommended`),
    known(due) && due > 0 && h("span", null, `probing ${countdown(due, nowMs)}`), verdict(result));
}

function connect({ workers, connectors, unassigned, contradictions, result }) {
  return h("span", { class: "parts" }, h("b", null, "Connect"),
    ` ${known(connectors) ? `${plural(connectors, "connector")} on ` : ""}${plural(workers, "worker")}`,
    contradictions > 0 && h("span", { class: "chip bad" }, plural(contradictions, "contradiction")),
    unassigned > 0 && h("span", { class: "chip unsure" }, `${count(unassigned)} unassigned`), verdict(result));
}

function verdict(result) {
  const [colour, sign] = look("decisions", result);
  return known(result) && h("span", { class: colour }, `${sign} ${result}`);
}
