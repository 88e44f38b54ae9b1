// Verdicts on groups and on their partitions: the colour and the sign of each.

import { h } from "../shell/dom.js";
import { UNKNOWN, duration, known, moment } from "../shell/format.js";

/** Every verdict, the worst last, as the service ranks them: its colour and a sign of its own. */
export const STATUS = {
  ok: ["ok", "✓"],
  unknown: ["unsure", "?"],
  slow: ["unsure", "△"],
  rewound: ["unsure", "↺"],
  diverging: ["bad", "▲"],
  stalled: ["bad", "◆"],
  stopped: ["bad", "■"],
};
const SEVERITY = Object.keys(STATUS);

/** Describe a verdict: its sign and its word. */
export function status(verdict) {
  if (!known(verdict)) return h("span", { class: "quiet" }, UNKNOWN);
  const [colour, sign] = STATUS[verdict] ?? ["unsure", "?"];
  return h("span", { class: colour }, h("span", { class: "sign", "aria-hidden": "true" }, sign), ` ${verdict}`);
}

/** How old the oldest unread record is; what was there at the oldest look is older than is known. */
export const age = (each) => `${each.lag_seconds_method === "at_least" ? "≥ " : ""}${duration(each.lag_seconds)}`;

/** Say for how long a group hasn't been ok: for 22 min; with a `+` where it may be longer. Null where it is. */
export function lasting(each, nowMs) {
  if (!known(each.since_ms)) return null;
  const said = duration((nowMs - each.since_ms) / 1000);
  return h("span", { class: "together", title: `not ok since ${each.since_at_least ? "before " : ""}${moment(each.since_ms)}` },
    each.since_at_least ? `for ${said} or more` : `for ${said}`);
}

/** Compare by verdict, the worst first; then by age and lag. */
export function worstFirst(a, b) {
  return SEVERITY.indexOf(b.status) - SEVERITY.indexOf(a.status)
    || (b.lag_seconds ?? -1) - (a.lag_seconds ?? -1)
    || (b.lag ?? -1) - (a.lag ?? -1);
}

/** Compare by a figure, the greatest first, the unknown last. */
export const greatestFirst = (name) => (a, b) => (b[name] ?? -1) - (a[name] ?? -1);
