// Recent events with their reasons, the newest first.

import { toGroup } from "../shell/address.js";
import { h } from "../shell/dom.js";
import { ago, moment } from "../shell/format.js";
import { more, portion } from "../shell/table.js";

const SHOWN = 8;
const KINDS = {
  rebalance: ["↻", "rebalance"], verdict: ["◆", "verdict"], movement: ["→", "movement"],
  reassignment: ["⇄", "reassignment"], connect: ["⌁", "Connect"], service: ["●", "caughtup"],
};

/** Describe the events. `group`: the page is that group's, so its events don't name it. */
export function happened(feed, ui, nowMs, group = null) {
  const all = feed ?? [];
  const shown = portion(ui.query, "events", SHOWN);
  return h("section", { key: "happened", class: "panel", "aria-labelledby": "happened" },
    h("h2", { id: "happened" }, "What just happened"),
    all.length
      ? h("ol", { class: "happened" }, all.slice(0, shown).map((each) => event(each, nowMs, group)))
      : h("p", { class: "quiet" }, "Nothing since the service started."),
    more(shown, all.length, "events", 50));
}

function event(each, nowMs, group) {
  const [sign, kind] = KINDS[each.kind] ?? ["·", each.kind];
  const href = each.group && each.group !== group && toGroup(each.group);
  return h("li", { key: `${each.at_ms} ${each.kind} ${each.group} ${each.partition} ${each.text}` },
    h("time", { class: "quiet", title: moment(each.at_ms), datetime: new Date(each.at_ms).toISOString() },
      ago(each.at_ms, nowMs)),
    h("span", { class: "sign", title: kind, "aria-hidden": "true" }, sign), h("span", { class: "unseen" }, kind),
    h("div", null,
      each.group && each.group !== group && (href
        ? h("a", { href, class: "fixed name" }, h("bdi", null, each.group)) : h("bdi", { class: "fixed name" }, each.group)),
      each.group && each.group !== group && " ",
      h("span", null, each.text),
      each.why && h("span", { class: "because quiet" }, each.why)));
}
