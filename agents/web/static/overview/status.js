// Verdicts on groups and on their partitions, and since when a group has one.

import { verdict } from "../shell/declared.js";
import { h } from "../shell/dom.js";
import { duration, known, moment, written } from "../shell/format.js";

/** Describe a verdict: its sign and its word. */
export const status = (word) => verdict("lag", word);

/** Return the age of the oldest unread record, a lower bound if it existed at the first observation. */
export const age = (each) => written("age", [each.lag_seconds, each.lag_seconds_method]);

/** Return for how long a group hasn't been ok (for 22 min or more); null if it is ok. */
export function lasting(each, nowMs) {
  if (!known(each.since_ms)) return null;
  const said = duration((nowMs - each.since_ms) / 1000);
  return h("span", { class: "together", title: `not ok since ${each.since_at_least ? "before " : ""}${moment(each.since_ms)}` },
    each.since_at_least ? `for ${said} or more` : `for ${said}`);
}
