// What the service could not work out, take or write: failures by group, records by topic.

import { h, head } from "./dom.js";
import { ago, count } from "./format.js";

/** Describe what failed, was refused or not written; nothing where all is well. */
export function faults(state, nowMs) {
  const failed = state.faults ?? [];
  const refused = state.refused ?? [];
  const aside = state.set_aside ?? [];
  return failed.length + refused.length + aside.length > 0 && h("section", { key: "faults", class: "panel", "aria-labelledby": "faults" },
    h("h2", { id: "faults" }, "Left out"),
    failed.length > 0 && h("div", { class: "scroll" }, h("table", { class: "rows groups" },
      head(["Failed", "Part"], ["Times"]),
      h("tbody", null, failed.map((each) => rows(
        `fault ${each.part} ${each.subject} ${each.cause}`, each.subject, each.part, count(each.times),
        `${each.cause}: ${each.message}`, ago(each.last_ms, nowMs)))))),
    refused.length > 0 && h("div", { class: "scroll" }, h("table", { class: "rows groups" },
      head(["Refused on", "Key"], ["Records"]),
      h("tbody", null, refused.map((each) => rows(
        `refused ${each.topic}`, each.topic, each.key, count(each.times),
        `${each.reason}: ${each.message}`, ago(each.at_ms, nowMs)))))),
    aside.length > 0 && h("div", { class: "scroll" }, h("table", { class: "rows groups" },
      head(["Not written", "Topic"], ["Records"]),
      h("tbody", null, aside.map((each) => rows(
        `aside ${each.topic} ${each.key}`, each.key, each.topic, count(each.times),
        `${each.reason}: ${each.message}`, ago(each.at_ms, nowMs)))))));
}

/** Describe one of them in two rows: what and how often; why, and when last. */
const rows = (key, subject, where, times, why, when) => [
  h("tr", { key },
    h("td", { class: "name fixed" }, subject),
    h("td", { class: "name fixed" }, where),
    h("td", { class: "number" }, times)),
  h("tr", { key: `about ${key}`, class: "about" }, h("td", { colspan: 3 },
    h("span", { class: "because" }, why), " ", h("span", { class: "quiet" }, when))),
];
