// Partitions in movement: how each fares and why, how far its copies are, and how others ended.

import { served } from "../shell/address.js";
import { h } from "../shell/dom.js";
import { ago, bytes, count, duration, known, plural } from "../shell/format.js";

const ENDED_SHOWN = 12;
/** Every verdict: its colour and a sign of its own. The service sorts, the worst first. */
const VERDICTS = {
  completing: ["ok", "✓"],
  moving: ["ok", "→"],
  tail: ["ok", "⇥"],
  measuring: ["unsure", "…"],
  unknown: ["unsure", "?"],
  slow: ["unsure", "△"],
  diverging: ["bad", "▲"],
  "throttled out": ["bad", "⊘"],
  stalled: ["bad", "◆"],
  blocked: ["bad", "■"],
  "dead target": ["bad", "✖"],
  "no source": ["bad", "✖"],
};
const PHASES = {
  U: "just begun",
  A: "copying",
  B: "switching over",
  completing: "completing",
  propagating: "ended, but not every broker knows it yet",
};
const OUTCOMES = {
  completed: "ok", cancelled: "unsure", superseded: "unsure", "reverted-partial": "bad", vanished: "bad",
};

/**
 * Describe the partitions in movement, throttles that are left over, and movements that ended.
 * `short`: beside other things, where `more` takes the place of how many are left out.
 */
export function reassignments(state, nowMs, { short = false, more = null } = {}) {
  const moving = state.reassignments ?? [];
  const counts = Object.entries(state.reassignment_counts ?? {});
  const all = counts.reduce((sum, [, number]) => sum + number, 0) || moving.length;
  const throttles = state.throttles ?? [];
  const ended = state.recent_reassignments ?? [];
  return h("section", { key: "reassignments", class: "panel", "aria-labelledby": "reassignments" },
    h("h2", { id: "reassignments" }, short ? h("a", { href: served("reassignments") }, "Reassignments") : "Reassignments", h("span", { class: "quiet" }, ` ${plural(all, "partition")}`)),
    all > 1 && h("p", { class: "counts" }, counts.map(([verdict, number]) =>
      h("span", { key: verdict }, said(verdict), ` ${count(number)}`))),
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
    h("p", null, h("bdi", { class: "fixed name" }, name), " ",
      h("span", { class: "fixed quiet together" }, `brokers ${brokers(each.original)} → ${brokers(each.target)}`)),
    h("p", { class: "figures" }, said(each.verdict),
      each.cause && h("span", { class: "cause" }, each.cause.replaceAll("-", " ")),
      h("span", { class: "quiet", title: `phase ${each.phase}` }, PHASES[each.phase] ?? each.phase),
      figures(each).map((figure) => h("span", { key: figure, class: "quiet together" }, figure))),
    h("div", { class: "replicas" }, (each.copies ?? []).map(copy)),
    each.verdict !== "moving" && each.why && h("p", { class: "because" }, each.why),
    each.advice && h("p", { class: "advice" }, whole(each.advice)));
}

/** A command's options, such as --cancel, aren't broken after their dashes. */
const whole = (advice) => advice.split(/(--[a-z][a-z-]*)/).map((part, at) =>
  (at % 2 ? h("span", { class: "together" }, part) : part));

/** What is left, how fast it goes, when it is over, since when it goes on. */
function figures(each) {
  const left = known(each.bytes_remaining) ? bytes(each.bytes_remaining)
    : known(each.offsets_remaining) && plural(each.offsets_remaining, "offset");
  return [
    left && `${left} left`,
    known(each.rate_bytes_per_second) && `${bytes(each.rate_bytes_per_second)}/s`,
    each.never ? "never ends at this pace" : known(each.eta_seconds) && `${duration(each.eta_seconds)} to go`,
    known(each.age_seconds) && `for ${duration(each.age_seconds)}`,
  ].filter(Boolean);
}

/** A replica as a bar: how much of the leader's log it has. */
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

function said(verdict) {
  const [colour, sign] = VERDICTS[verdict] ?? ["unsure", "?"];
  return h("span", { class: `${colour} together` }, h("span", { class: "sign", "aria-hidden": "true" }, sign), ` ${verdict}`);
}

const end = (nowMs) => (each) =>
  h("li", { key: `${each.topic}-${each.partition}@${each.at_ms}`, title: route(each) },
    h("span", { class: "fixed" }, `${each.topic}-${each.partition} `),
    h("span", { class: OUTCOMES[each.outcome] ?? "unsure" }, each.outcome),
    h("span", { class: "quiet" }, ` ${ago(each.at_ms, nowMs)}`));

/** From where to where it was to go, and where it is. */
const route = (each) => `${brokers(each.original)} → ${brokers(each.target)}`
  + (each.outcome !== "completed" && each.replicas ? `, now ${brokers(each.replicas)}` : "");

const brokers = (each) => (each ?? []).join(",");
