// The overview: every group, recent events, and partitions in movement.

import { served } from "../shell/address.js";
import { h } from "../shell/dom.js";
import { count, plural } from "../shell/format.js";
import { charts } from "../group/charts.js";
import { health } from "../views/health.js";
import { reassignments } from "../views/reassignments.js";
import { streams } from "../views/streams.js";
import { changes } from "./changes.js";
import { groups } from "./groups.js";
import { happened } from "./happened.js";

const CHARTS = [
  { id: "lag", title: "Lag of all groups", series: [["lag", "offsets", "offset"]] },
  { id: "behind", title: "Groups that are not ok", series: [["groups_behind", "groups", "group"]] },
  { id: "copies", title: "Copies being built", series: [["warmups", "warm-ups", "warm-up"], ["restoring", "restoring"]] },
  { id: "left", title: "Left to reassign", series: [["bytes_left", "left"]], bytes: true },
];

/** Reassignments that the overview shows, the worst. */
const MOVEMENTS_SHOWN = 3;

/** Describe the overview. */
export function overview(state, ui, nowMs) {
  const counts = Object.values(state.reassignment_counts ?? {});
  const moving = counts.reduce((sum, each) => sum + each, 0) || (state.reassignments ?? []).length;
  const shown = (state.reassignments ?? []).slice(0, MOVEMENTS_SHOWN);
  const moved = reassignments({ ...state, reassignments: shown }, nowMs, {
    short: true, more: moving > shown.length && h("p", { class: "quiet" },
      h("a", { href: served("reassignments") }, `${count(moving - shown.length)} more`), ", none of them worse than these.") });
  return [
    h("h2", { class: "unseen" }, "Overview"),
    h("div", { key: "main", class: "column" }, charts(CHARTS, ui), changes(state.groups, ui, nowMs),
      groups(state, ui, nowMs)),
    h("div", { key: "side", class: "column" },
      moving > 0 && moved, // in progress: above recent events
      happened(state.feed, ui, nowMs),
      moving === 0 && moved,
      streams(state, nowMs),
      health(state, nowMs)),
  ];
}

/** Return the window's title: what is being built. */
export function building(state) {
  const warmups = (state.groups ?? []).reduce((sum, each) => sum + (each.application?.copies?.warmup ?? 0), 0);
  return warmups ? plural(warmups, "warm-up") : "";
}
