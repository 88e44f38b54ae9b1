// Every group: how it fares and why, and how far it is behind.

import { h, head } from "./dom.js";
import { UNKNOWN, count, duration, known, naturally, plural } from "./format.js";

const GROUPS_SHOWN = 50;
/** Every verdict, the worst last, as the service ranks them: its colour and a sign of its own. */
const STATUS = {
  ok: ["ok", "✓"],
  unknown: ["unsure", "?"],
  slow: ["unsure", "△"],
  rewound: ["unsure", "↺"],
  diverging: ["bad", "▲"],
  stalled: ["bad", "◆"],
  stopped: ["bad", "■"],
};
const SEVERITY = Object.keys(STATUS);

/** Describe the groups that fare worst, of those whose name holds `search`. */
export function groups(state, search, nowMs) {
  const all = state.groups ?? [];
  const wanted = search.toLowerCase();
  const found = all.filter((each) => each.group.toLowerCase().includes(wanted)).sort(worstFirst);
  const shown = found.slice(0, GROUPS_SHOWN);
  const largest = Math.max(0, ...shown.map((each) => each.lag ?? 0));
  return h("section", { key: "groups", class: "panel", "aria-labelledby": "groups" },
    h("div", { class: "tools" },
      h("h2", { id: "groups" }, "Groups", h("span", { class: "quiet" }, ` ${count(all.length)}`)),
      h("input", { type: "search", "data-search": true, placeholder: "Find a group", "aria-label": "Find a group" })),
    shown.length
      ? h("div", { class: "scroll" }, h("table", { class: "rows groups" },
        head(["Group", "Status"], ["Lag", "In time"]),
        h("tbody", null, shown.map((each) => rows(each, largest, nowMs)))))
      : h("p", { class: "quiet" }, all.length ? "No group's name holds that."
        : state.ready ? "No group has committed yet." : "Not read yet."),
    found.length > shown.length && h("p", { class: "quiet" },
      `${count(found.length - shown.length)} more that fare no worse than these.`),
    notTold(state.groups_not_told),
    (state.checkpoint_problems ?? []).map((each) => h("p", { key: `checkpoint ${each.checkpoint}`, class: "because" },
      `The checkpoint ${each.checkpoint} can't be read: ${each.why}.`)));
}

/** Say how many groups are left out, and why; nothing where all are there. */
function notTold(counts) {
  const said = [
    counts?.ignored && `${plural(counts.ignored, "group")} ignored by the settings`,
    counts?.folded && `${count(counts.folded)} of caughtup's own and of Spark's drivers folded away`,
    counts?.limited && `${count(counts.limited)} by topic or as a whole in metrics`,
  ].filter(Boolean);
  return said.length > 0 && h("p", { class: "quiet" }, `${said.join(", ")}.`);
}

/** Describe a group in two rows: its figures; what it is and, where it isn't well, why. */
function rows(each, largest, nowMs) {
  const why = each.status !== "ok" && each.why;
  return [
    h("tr", { key: `group ${each.group}` },
      h("td", { class: "name fixed" }, each.group),
      h("td", { class: "together", title: each.why ?? null }, status(each.status)),
      h("td", { class: "number lag" }, h("b", null, count(each.lag)),
        h("span", { class: "progress", "--share": largest ? ((each.lag ?? 0) / largest).toFixed(3) : 0 })),
      h("td", { class: "number", title: "the age of its oldest unread record" }, age(each))),
    h("tr", { key: `about ${each.group}`, class: "about" }, h("td", { colspan: 4 },
      why && h("span", { class: "because" }, why), h("span", { class: "quiet" }, kind(each, nowMs)))),
  ];
}

/**
 * What it is, how large, how often it was dealt anew: classic, 2 members, 12 partitions, generation 4;
 * of a query of Spark's the last batch that it committed: spark, 12 partitions, batch 41, 8 s ago.
 */
const kind = (each, nowMs) => [
  each.group_type,
  known(each.members) && plural(each.members, "member"),
  known(each.partitions) && plural(each.partitions, "partition"),
  known(each.generation) && `generation ${each.generation}`,
  known(each.batch) && `batch ${each.batch}`,
  known(each.batch_ms) && `${duration(Math.max(0, nowMs - each.batch_ms) / 1000)} ago`,
].filter(Boolean).join(", ");

function status(verdict) {
  if (!known(verdict)) return h("span", { class: "quiet" }, UNKNOWN);
  const [colour, sign] = STATUS[verdict] ?? ["unsure", "?"];
  return h("span", { class: colour }, h("span", { class: "sign", "aria-hidden": "true" }, sign), ` ${verdict}`);
}

/** What was there already at the oldest look is older than is known. */
const age = (each) => `${each.lag_seconds_method === "at_least" ? "≥ " : ""}${duration(each.lag_seconds)}`;

function worstFirst(a, b) {
  return SEVERITY.indexOf(b.status) - SEVERITY.indexOf(a.status)
    || (b.lag_seconds ?? -1) - (a.lag_seconds ?? -1)
    || (b.lag ?? -1) - (a.lag ?? -1)
    || naturally(a.group, b.group);
}
