// The recommended movements: task, source, destination, lag and reason.

import { h } from "../shell/dom.js";
import { ago, count, known, naturally, short as few } from "../shell/format.js";
import { word } from "../shell/glossary.js";
import { isolated, shortened } from "../shell/names.js";
import { more, portion, table } from "../shell/table.js";
import { clientNames, indexed, isSoft, lagWithAge, reasonBy, route, routeBy } from "./copies.js";

const SHOWN = 10;
const TASKS_NAMED = 12;
const NAME_CHARACTERS = 24;
const KINDS = {
  warmup: "warm-up", cold: "cold hand-over", waiting: "waiting its turn", swap: "swap",
  active: "caught up: hand over", standby: "standby", stateless: "stateless",
};

/** Kafka's assignors: a leader with one doesn't follow recommendations. */
const KAFKAS = new Set(["HighAvailabilityTaskAssignor", "LegacyStickyTaskAssignor", "StickyTaskAssignor", "FallbackPriorTaskAssignor"]);

/** Describe the recommended movements; equal ones share a row. */
export function movements(app, ui, nowMs) {
  const all = indexed(app).pending;
  if (!all.length) return null;
  const rows = together(all);
  const shown = rows.slice(0, portion(ui.query, "moves", SHOWN));
  const names = clientNames(app);
  const short = shortened(names.values(), NAME_CHARACTERS);
  const named = (process) => isolated(names.has(process) ? short.of(names.get(process)) : process);
  return h("section", { key: "movements", class: "scroll" },
    h("h4", null, word("recommended", "Recommended movements"), app.recommendation.decided_at_ms > 0
      && h("span", { class: "quiet" }, `, decided ${ago(app.recommendation.decided_at_ms, nowMs)}`),
    KAFKAS.has(app.exact?.assignor) && h("span", { class: "quiet" }, `; the leader decides by ${app.exact.assignor}`)),
    table("movements", shown.map(({ key, move, tasks }) => ({ ...move, key, tasks })), {
      kind: "moves", key: (each) => each.key, app, names, named, nowMs }),
    more(shown.length, rows.length, "moves", 100));
}

/** The lag of the copy at the destination, or without one the lag at the decision. */
function lag({ tasks, to, lag: decided }, column, { app, nowMs }) {
  const copy = tasks.length === 1 ? indexed(app).copies.get(tasks[0])?.get(to) : undefined;
  if (!known(copy?.lag)) return { title: known(decided) ? count(decided) : null, says: few(decided) };
  return { class: isSoft(copy, nowMs) ? "soft" : "", title: `${count(decided)} when it was decided`, says: lagWithAge(copy, nowMs) };
}

/** The renderers of a movement's cells. */
export const MOVEMENT_CELLS = {
  "moved tasks": ({ tasks }) => ({ class: `fixed tasks${tasks.length > 1 ? " several" : ""}`, title: tasks.join(", "),
    says: [tasks.slice(0, TASKS_NAMED).join(" "), tasks.length > TASKS_NAMED && ` and ${count(tasks.length - TASKS_NAMED)} more`] }),
  movement: ({ kind }) => ({ says: h("span", { class: `kind ${kind}` }, KINDS[kind] ?? kind) }),
  route: (move, column, { names, named }) => ({ class: "fixed route", title: route(move, names), says: routeBy(move, named) }),
  "moved lag": lag,
  reason: ({ reason }, column, { names }) => ({ class: "why", says: reasonBy(reason, names) }),
};

/** Group movements that differ only in their task; warm-ups first. */
function together(movements) {
  const rows = new Map();
  for (const move of movements) {
    const key = JSON.stringify([move.kind, move.from, move.to, move.lag, move.reason]);
    if (rows.has(key)) rows.get(key).tasks.push(move.task);
    else rows.set(key, { key, move, tasks: [move.task] });
  }
  for (const row of rows.values()) row.tasks.sort(naturally);
  const order = Object.keys(KINDS);
  const rank = ({ move }) => (order.indexOf(move.kind) + order.length + 1) % (order.length + 1);
  return [...rows.values()].sort((a, b) => rank(a) - rank(b) || naturally(a.tasks[0], b.tasks[0]));
}
