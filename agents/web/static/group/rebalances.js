// A group's last rebalances: what caused each, how sure that is, and what it cost.

import { causeWords } from "../shell/declared.js";
import { h } from "../shell/dom.js";
import { table } from "../shell/table.js";

/** Describe the last rebalances, the newest first; null without any. */
export function rebalances(state, nowMs) {
  const all = state.rebalances ?? [];
  return all.length > 0 && h("section", { key: "rebalances", class: "panel", "aria-labelledby": "rebalances" },
    h("h2", { id: "rebalances" }, "Last rebalances"),
    h("div", { class: "scroll" }, table("rebalances", all, {
      kind: "rebalances", key: (each) => `${each.generation} ${each.at_ms}`, nowMs })));
}

const SHOWN = 3;

/** The causes in words, each with its evidence. */
function causes({ causes: all }) {
  return { class: "name", says: [
    all.slice(0, SHOWN).map((cause, at) => h("div", { key: at },
      (cause.client ?? cause.topic) !== undefined && [h("bdi", null, cause.client || cause.member || cause.topic), " "],
      causeWords(cause.kind),
      cause.sure !== "certain" && h("span", { class: "quiet" }, ` (${cause.sure})`),
      cause.why && h("span", { class: "because quiet" }, cause.why))),
    all.length > SHOWN && h("span", { class: "quiet" }, `and ${all.length - SHOWN} more`)] };
}

/** The renderer of a rebalance's causes. */
export const REBALANCE_CELLS = { causes };
