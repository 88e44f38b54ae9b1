// Open transactions that hold back a last stable offset: whose, since when, and what is behind them.

import { toGroup } from "../shell/address.js";
import { h } from "../shell/dom.js";
import { plural } from "../shell/format.js";
import { table } from "../shell/table.js";

/** Describe the open transactions that hold something back. */
export function transactions(state, nowMs) {
  const all = state.transactions ?? [];
  return h("section", { key: "transactions", class: "panel", "aria-labelledby": "transactions" },
    h("h2", { id: "transactions" }, "Open transactions", h("span", { class: "quiet" }, ` ${plural(all.length, "transaction")}`)),
    (state.transactions_missing ?? []).map((missing) =>
      h("p", { key: `missing ${missing}`, class: "unsure" }, `Not known: ${missing}`)),
    state.partitions_left_out > 0 && h("p", { class: "unsure" }, `Not asked about: ${plural(state.partitions_left_out, "partition")}`),
    all.length
      ? h("div", { class: "scroll" }, table("transactions", all, {
        kind: "groups", key: (each) => `transaction ${each.producer_id} ${each.producer_epoch}`, about: below, nowMs }))
      : h("p", { class: "quiet" }, state.ready ? "No open transaction holds anything back." : "Not read yet."));
}

const below = (each) => h("span", { class: "advice" }, each.advice);

/** The renderer of the groups that a transaction blocks, as links to their pages. */
export const TRANSACTION_CELLS = {
  "blocked groups": ({ blocked_groups: groups }) => ({ class: "name", says: groups.map((group) => {
    const href = toGroup(group);
    return [h("bdi", null, href ? h("a", { href, class: "fixed" }, group) : group), " "];
  }) }),
};
