// Partitions in movement, and how they ended.

import { h, head } from "./dom.js";
import { UNKNOWN, ago, count, duration, known, naturally } from "./format.js";

/** Seconds without progress before a movement is called stalled: the alert's own threshold. */
const STALLED_AFTER = 300;
const PHASES = { A: "copying", completing: "completing" };
const OUTCOMES = { completed: "ok", cancelled: "unsure", superseded: "unsure", vanished: "bad" };

/** Describe the partitions in movement and those that ended; `most` remembers the most seen to copy. */
export function reassignments(state, most, nowMs) {
  const moving = [...(state.reassignments ?? [])].sort(byPartition);
  const ended = [...(state.recent_reassignments ?? [])].sort((a, b) => b.at_ms - a.at_ms);
  return h("section", { key: "reassignments", class: "panel", "aria-labelledby": "reassignments" },
    h("h2", { id: "reassignments" }, "Reassignments", h("span", { class: "quiet" }, ` ${count(moving.length)} moving`)),
    moving.length
      ? h("div", { class: "scroll" }, h("table", { class: "rows" },
        head(["Partition", "Replicas", "In sync"], ["Left to copy", "Age"], "In sync"),
        h("tbody", null, moving.map((each) => movement(each, most)))))
      : h("p", { class: "quiet" }, state.ready ? "No partition is in movement." : "Not read yet."),
    ended.length > 0 && h("ul", { class: "ended" }, ended.slice(0, 12).map((each) =>
      h("li", { key: `${each.topic}-${each.partition}@${each.at_ms}` },
        h("span", { class: "fixed" }, `${each.topic}-${each.partition} `),
        h("span", { class: OUTCOMES[each.outcome] ?? "unsure" }, each.outcome),
        h("span", { class: "quiet" }, ` ${ago(each.at_ms, nowMs)}`)))));
}

function movement(each, most) {
  const name = `${each.topic}-${each.partition}`;
  const stalled = known(each.idle_seconds) && each.idle_seconds > STALLED_AFTER;
  const total = Math.max(most.get(name) ?? 0, each.offsets_remaining ?? 0);
  most.set(name, total);
  const inSync = each.target.filter((broker) => each.isr.includes(broker)).length;
  const done = total > 0 ? 1 - each.offsets_remaining / total : 1;
  return h("tr", { key: name, class: stalled ? "stalled" : null },
    h("td", { class: "name" }, h("span", { class: "fixed" }, name),
      h("span", { class: stalled ? "phase bad" : "phase quiet" }, 
      stalled ? `⚠ no progress for ${duration(each.idle_seconds)}` : PHASES[each.phase] ?? each.phase)),
    h("td", { class: "fixed together" }, `${before(each).join(",")} → ${each.target.join(",")}`),
    h("td", { class: "spare", title: `leader ${each.leader ?? UNKNOWN}` }, `${inSync} of ${each.target.length}`),
    h("td", { class: "number" }, count(each.offsets_remaining),
      known(each.offsets_remaining) && h("span", { class: "progress", "--share": done.toFixed(3),
        title: "against the most this page has seen" })),
    h("td", { class: "number" }, duration(each.age_seconds)));
}

const before = (each) => each.replicas.filter((broker) => !each.adding.includes(broker));

const byPartition = (a, b) => naturally(`${a.topic}-${a.partition}`, `${b.topic}-${b.partition}`);
