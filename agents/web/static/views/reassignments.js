// Partitions in movement: verdict, reason, progress of the replicas; and those that ended.

import { served } from "../shell/address.js";
import { columns, styleOf, verdict } from "../shell/declared.js";
import { h } from "../shell/dom.js";
import { ago, count, duration, known, plural, written } from "../shell/format.js";
import { cell } from "../shell/table.js";

const ENDED_SHOWN = 12;
const PHASES = {
  U: "just begun",
  A: "copying",
  B: "switching over",
  completing: "completing",
  propagating: "ended, but not every broker knows it yet",
};

/**
 * Describe the partitions in movement, orphaned throttles, and reassignments that ended.
 * `short`: a part of the overview, with `more` instead of the number that is left out.
 */
export function reassignments(state, nowMs, { short = false, more = null } = {}) {
  const moving = state.reassignments ?? [];
  const counts = Object.entries(state.reassignment_counts ?? {});
  const all = counts.reduce((sum, [, number]) => sum + number, 0) || moving.length;
  const throttles = state.throttles ?? [];
  const ended = state.recent_reassignments ?? [];
  return h("section", { key: "reassignments", class: "panel", "aria-labelledby": "reassignments" },
    h("h2", { id: "reassignments" }, short ? h("a", { href: served("reassignments") }, "Reassignments") : "Reassignments", h("span", { class: "quiet" }, ` ${plural(all, "partition")}`)),
    all > 1 && h("p", { class: "counts" }, counts.map(([word, number]) =>
      h("span", { key: word }, said(word), ` ${count(number)}`))),
    (state.reassignments_missing ?? []).map((missing) =>
      h("p", { key: `missing ${missing}`, class: "unsure" }, `Not known: ${missing}`)),
    moving.length
      ? h("ol", { class: "movements" }, moving.map(movement))
      : h("p", { class: "quiet" }, state.ready ? "No partition is in movement." : "Not read yet."),
    more ?? (all > moving.length && h("p", { class: "quiet" },
      `${count(all - moving.length)} more, none of them worse than these.`)),
    throttles.map((each) => h("div", { key: `throttle ${each.kind} ${each.name}`, class: "movement" },
      h("p", null, h("span", { class: "unsure" }, h("span", { class: "sign", "aria-hidden": "true" }, "⊘"),
        " orphaned throttle"), ` on the ${each.kind} `, h("span", { class: "fixed" }, each.name)),
      h("p", { class: "because" }, h("span", { class: "fixed" }, each.what)),
      h("p", { class: "advice" }, whole(each.advice)))),
    ended.length > 0 && h("ul", { class: "ended" }, ended.slice(0, short ? ENDED_SHOWN : 200).map(end(nowMs))));
}

function movement(each) {
  const name = `${each.topic}-${each.partition}`;
  return h("li", { key: name, class: "movement" },
    h("p", null, h("bdi", { class: "fixed name" }, name)),
    h("p", { class: "figures" }, figures(each),
      known(each.age_seconds) && h("span", { class: "quiet together" }, `for ${duration(each.age_seconds)}`)),
    h("div", { class: "replicas" }, (each.copies ?? []).map(copy)),
    each.verdict !== "moving" && each.why && h("p", { class: "because" }, each.why),
    each.advice && h("p", { class: "advice" }, whole(each.advice)));
}

/** Prevent line breaks after the dashes of options such as --cancel. */
const whole = (advice) => advice.split(/(--[a-z][a-z-]*)/).map((part, at) =>
  (at % 2 ? h("span", { class: "together" }, part) : part));

/** Describe the declared figures, each after its heading unless it has a renderer. */
const figures = (each) => columns("reassignments").map((column) => {
  const { heading, page: { cell: renderer } } = column;
  const { says } = cell(each, column, {});
  return renderer ? says
    : says && h("span", { key: heading, class: "together" }, h("span", { class: "quiet" }, `${heading} `), says);
});

/** The renderer of a reassignment's phase, after the cause of its verdict. */
export const REASSIGNMENT_CELLS = {
  phase: ({ cause, phase }) => ({ says: [cause && h("span", { class: "cause" }, cause.replaceAll("-", " ")),
    h("span", { class: "quiet", title: `phase ${phase}` }, PHASES[phase] ?? phase)] }),
};

/** Describe a replica as a bar: its share of the leader's log. */
function copy(each) {
  const state = each.in_sync ? "in sync" : each.away ? "its broker is away" : each.missing ? "not created"
    : each.unanswered ? "doesn't answer" : known(each.share) ? `${Math.floor(100 * each.share)} %` : "unknown";
  const colour = each.in_sync ? "quiet" : each.away || each.missing ? "bad" : "";
  return h("span", { key: each.broker, class: "replica", title: `broker ${each.broker} ${ROLES[each.role]}` },
    h("span", { class: "fixed" }, each.role === "added" ? `+${each.broker}` : each.role === "removed" ? `−${each.broker}` : each.broker),
    " ", h("span", { class: colour }, state),
    h("span", { class: "progress", "--share": (each.share ?? 0).toFixed(3) }));
}

const ROLES = { added: "is added", removed: "is removed", stays: "stays" };

const said = (word) => verdict("reassignments", word);

const end = (nowMs) => (each) =>
  h("li", { key: `${each.topic}-${each.partition}@${each.at_ms}`, title: route(each) },
    h("span", { class: "fixed" }, `${each.topic}-${each.partition} `),
    h("span", { class: styleOf("outcomes", each.outcome)[0] }, each.outcome),
    h("span", { class: "quiet" }, ` ${ago(each.at_ms, nowMs)}`));

/** Return original and target replicas, and the present ones if it did not complete. */
const route = (each) => written("route", [each.original, each.target])
  + (each.outcome !== "completed" && each.replicas ? `, now ${each.replicas.join(",")}` : "");
