// The entrance: every group, what just happened, and what moves between brokers.

import { served } from "../shell/address.js";
import { h } from "../shell/dom.js";
import { count, plural } from "../shell/format.js";
import { charts } from "../group/charts.js";
import { health } from "../views/health.js";
import { reassignments } from "../views/reassignments.js";
import { streams } from "../views/streams.js";
import { groups } from "./groups.js";
import { happened } from "./happened.js";

const CHARTS = [
  { id: "lag", title: "Lag of all groups", series: [["lag", "offsets", "offset"]] },
  { id: "behind", title: "Groups behind", series: [["groups_behind", "groups", "group"]] },
  { id: "copies", title: "Copies being built", series: [["warmups", "warm-ups", "warm-up"], ["restoring", "restoring"]] },
  { id: "left", title: "Left to reassign", series: [["bytes_left", "left"]], bytes: true },
];

/** Describe the overview. */
export function overview(state, ui, nowMs) {
  const counts = Object.values(state.reassignment_counts ?? {});
  const moving = counts.reduce((sum, each) => sum + each, 0) || (state.reassignments ?? []).length;
  const shown = state.reassignments ?? [];
  return [
    h("h2", { class: "unseen" }, "Overview"),
    h("div", { key: "main", class: "column" }, charts(CHARTS, ui), groups(state, ui, nowMs)),
    h("div", { key: "side", class: "column" },
      happened(state.feed, ui, nowMs),
      reassignments(state, nowMs, { short: true, more: moving > shown.length && h("p", { class: "quiet" },
        h("a", { href: served("reassignments") }, `${count(moving - shown.length)} more`), " that fare no worse than these.") }),
      streams(state, nowMs),
      health(state, nowMs)),
  ];
}

/** What stands in the window's title: what is being built. */
export function building(state) {
  const warmups = (state.groups ?? []).reduce((sum, each) => sum + (each.application?.copies?.warmup ?? 0), 0);
  return warmups ? plural(warmups, "warm-up") : "";
}
