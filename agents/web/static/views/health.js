// The service itself: its parts, its reader, failures, refused records, and unwritten ones.

import { h } from "../shell/dom.js";
import { ago, count, known, plural, short } from "../shell/format.js";
import { word } from "../shell/glossary.js";
import { table } from "../shell/table.js";
import { happened } from "../overview/happened.js";

/** Describe failures, refused records and unwritten ones; nothing if there are none. */
export function health(state, nowMs) {
  const failed = state.faults ?? [];
  const refused = state.refused ?? [];
  const aside = state.set_aside ?? [];
  const checkpoints = state.checkpoint_problems ?? [];
  return failed.length + refused.length + aside.length + checkpoints.length > 0 && h("section", { key: "faults", class: "panel", "aria-labelledby": "faults" },
    h("h2", { id: "faults" }, word("left out", "Left out")),
    leftOut("faults", failed, (each) => `fault ${each.part} ${each.subject} ${each.cause}`, ({ cause, last_ms }) => [cause, last_ms], nowMs),
    checkpoints.map((each) => h("p", { key: `checkpoint ${each.checkpoint}` },
      `The service cannot read the checkpoint ${each.checkpoint}: ${each.why}.`)),
    leftOut("refused", refused, (each) => `refused ${each.topic}`, ({ reason, at_ms }) => [reason, at_ms], nowMs),
    leftOut("set_aside", aside, (each) => `aside ${each.topic} ${each.key}`, ({ reason, at_ms }) => [reason, at_ms], nowMs));
}

/** Describe what was left out, a table of one kind; below each the reason and the last time. */
function leftOut(of, rows, key, last, nowMs) {
  const about = (each) => {
    const [reason, atMs] = last(each);
    return [h("span", { class: "because" }, `${reason}: ${each.message}`), " ", h("span", { class: "quiet" }, ago(atMs, nowMs))];
  };
  return rows.length > 0 && h("div", { class: "scroll" }, table(of, rows, { kind: "groups left-out", key, about, nowMs }));
}

/** Describe the whole of the service's health. */
export function wholeHealth(state, ui, nowMs) {
  const said = [
    ["Ready", state.ready ? h("b", { class: "ok" }, "✓ yes") : h("b", { class: "bad" }, "✗ no"),
      (state.unready ?? []).map((each) => h("span", { key: each, class: "why" }, each))],
    ["Records read", h("b", null, short(state.reader?.records)), `, ${plural(state.reader?.lag, "record")} behind`],
    ["Decode errors", h("b", { class: state.reader?.decode_errors ? "bad" : null }, count(state.reader?.decode_errors))],
    ["Version", state.version],
    ["Cluster", h("span", { class: "fixed" }, state.cluster)],
    (state.instances ?? []).length > 0 && ["Other instances", state.instances.map((each) => h("span", { key: each.name, class: "why" },
      h("span", { class: "fixed" }, each.name), `, ${plural(each.partitions, "partition")} of groups, `,
      known(each.why) ? h("b", { class: "bad" }, `✗ ${each.why}`) : h("b", { class: "ok" }, `✓ answered ${ago(each.as_of_ms, nowMs)}`)))],
  ];
  return [
    h("section", { key: "health", class: "panel", "aria-labelledby": "health" },
      h("h2", { id: "health" }, "caughtup itself"),
      h("dl", { class: "facts" }, said.filter(Boolean).map(([term, ...says]) => h("div", { key: term }, h("dt", null, term), h("dd", null, says))))),
    state.parts?.length > 0 && h("section", { key: "parts", class: "panel", "aria-labelledby": "parts" },
      h("h2", { id: "parts" }, "Parts"),
      h("p", { class: "quiet" }, "Each line says when the part last made progress. If a part makes none for too long, the service ends itself."),
      (state.unhealthy ?? []).map((each) => h("p", { key: each, class: "bad" }, each)),
      h("ul", { class: "points" }, state.parts.map((each) => h("li", { key: each.split(":")[0] }, each)))),
    state.feed?.length > 0 && happened(state.feed, ui, nowMs),
    health(state, nowMs) || h("section", { key: "faults", class: "panel" },
      h("h2", null, word("left out", "Left out")), h("p", { class: "quiet" }, state.reader?.decode_errors
        ? `${plural(state.reader.decode_errors, "record")} could not be decoded. The service could compute and write everything else.`
        : "Nothing: the service could compute, read and write everything.")),
  ];
}
