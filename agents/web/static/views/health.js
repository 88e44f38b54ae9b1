// The service itself: its parts, its reader, failures, refused records, and unwritten ones.

import { h } from "../shell/dom.js";
import { ago, count, plural, short } from "../shell/format.js";
import { word } from "../shell/glossary.js";
import { head } from "../shell/table.js";
import { happened } from "../overview/happened.js";

/** Describe failures, refused records and unwritten ones; nothing if there are none. */
export function health(state, nowMs) {
  const failed = state.faults ?? [];
  const refused = state.refused ?? [];
  const aside = state.set_aside ?? [];
  const checkpoints = state.checkpoint_problems ?? [];
  return failed.length + refused.length + aside.length + checkpoints.length > 0 && h("section", { key: "faults", class: "panel", "aria-labelledby": "faults" },
    h("h2", { id: "faults" }, word("left out", "Left out")),
    failed.length > 0 && h("div", { class: "scroll" }, h("table", { class: "rows groups left-out" },
      head(["Failed", "Part"], ["Times"]),
      h("tbody", null, failed.map((each) => rows(
        `fault ${each.part} ${each.subject} ${each.cause}`, each.subject, each.part, count(each.times),
        `${each.cause}: ${each.message}`, ago(each.last_ms, nowMs)))))),
    checkpoints.map((each) => h("p", { key: `checkpoint ${each.checkpoint}` },
      `The service cannot read the checkpoint ${each.checkpoint}: ${each.why}.`)),
    refused.length > 0 && h("div", { class: "scroll" }, h("table", { class: "rows groups left-out" },
      head(["Refused on", "Key"], ["Records"]),
      h("tbody", null, refused.map((each) => rows(
        `refused ${each.topic}`, each.topic, each.key, count(each.times),
        `${each.reason}: ${each.message}`, ago(each.at_ms, nowMs)))))),
    aside.length > 0 && h("div", { class: "scroll" }, h("table", { class: "rows groups left-out" },
      head(["Not written", "Topic"], ["Records"]),
      h("tbody", null, aside.map((each) => rows(
        `aside ${each.topic} ${each.key}`, each.key, each.topic, count(each.times),
        `${each.reason}: ${each.message}`, ago(each.at_ms, nowMs)))))));
}

/** Describe one in two rows: subject and count; reason and last time. */
const rows = (key, subject, where, times, why, when) => [
  h("tr", { key },
    h("td", { class: "name fixed" }, subject),
    h("td", { class: "name fixed" }, where),
    h("td", { class: "number" }, times)),
  h("tr", { key: `about ${key}`, class: "about" }, h("td", { colspan: 3 },
    h("span", { class: "because" }, why), " ", h("span", { class: "quiet" }, when))),
];

/** Describe the whole of the service's health. */
export function wholeHealth(state, ui, nowMs) {
  const said = [
    ["Ready", state.ready ? h("b", { class: "ok" }, "✓ yes") : h("b", { class: "bad" }, "✗ no"),
      (state.unready ?? []).map((each) => h("span", { key: each, class: "why" }, each))],
    ["Records read", h("b", null, short(state.reader?.records)), `, ${plural(state.reader?.lag, "record")} behind`],
    ["Decode errors", h("b", { class: state.reader?.decode_errors ? "bad" : null }, count(state.reader?.decode_errors))],
    ["Version", state.version],
    ["Cluster", h("span", { class: "fixed" }, state.cluster)],
  ];
  return [
    h("section", { key: "health", class: "panel", "aria-labelledby": "health" },
      h("h2", { id: "health" }, "caughtup itself"),
      h("dl", { class: "facts" }, said.map(([term, ...says]) => h("div", { key: term }, h("dt", null, term), h("dd", null, says))))),
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
