// The streams of the jobs on Spark: the last reported progress of each.

import { h } from "../shell/dom.js";
import { ago, count, duration, known, plural } from "../shell/format.js";
import { table } from "../shell/table.js";

/** Describe the streams; nothing if there was none, except on their own page. */
export function streams(state, nowMs, alone = false) {
  const all = state.streams ?? [];
  if (alone && !all.length) {
    return h("section", { key: "streams", class: "panel" }, h("h2", null, "Streams on Spark"),
      h("p", { class: "quiet" }, "No stream of the data pipeline has reported yet. caughtup pipeline history and rates are such streams."));
  }
  return all.length > 0 && h("section", { key: "streams", class: "panel", "aria-labelledby": "streams" },
    h("h2", { id: "streams" }, "Streams on Spark"),
    h("div", { class: "scroll" }, table("streams", all, {
      kind: "groups", key: (each) => `stream ${each.stream}`, about: (each) => below(each, nowMs), nowMs })));
}

/** Describe what stands below a stream: its last batch and, if its status is bad, the reason. */
const below = (each, nowMs) => [
  each.why && h("span", { class: "because" }, each.why),
  h("span", { class: "quiet" }, about(each, nowMs)),
  each.quarantined > 0 && h("span", { class: "bad" }, ` ${plural(each.quarantined, "record")} quarantined`),
];

/** Return the age of its report, and its last batch: heard 3 s ago, batch 12 of 500 records in 4 s. */
const about = (each, nowMs) => [
  `reported ${ago(each.heard_ms, nowMs)}`,
  known(each.batch) && `batch ${count(each.batch)} of ${plural(each.rows, "record")} in ${duration(each.batch_seconds)}`,
  known(each.state_rows) && `${plural(each.state_rows, "row")} of state`,
  known(each.watermark_ms) && `watermark ${ago(each.watermark_ms, nowMs)}`,
].filter(Boolean).join(", ");
