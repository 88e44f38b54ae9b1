// Clients without an active task: their copies, and when and why a task may move there.

import { h } from "../shell/dom.js";
import { ago, countdown, duration, known, naturally, plural } from "../shell/format.js";
import { clientNames, reasonBy } from "./copies.js";

/** The most clients that are described; the others are counted. */
const SHOWN = 3;
const TASKS_NAMED = 6;
/** The kinds of movements, by how soon they bring an active task. */
const PLANS = ["swap", "warmup", "waiting"];

/** Describe clients without an active task as a fact; null if there are none. */
export function idle(app, nowMs) {
  const running = new Set(app.tasks.flatMap((task) => task.copies)
    .filter((copy) => copy.role === "active" || copy.role === "restoring").map((copy) => copy.process));
  const without = app.clients.filter((client) => !running.has(client.process));
  if (!without.length || !app.tasks.length) return null;
  return h("div", { key: "idle" }, h("dt", null, "Without an active task"), h("dd", null,
    without.slice(0, SHOWN).map((client, at) => h("span", { key: client.process, class: "cost" },
      h("b", null, h("bdi", null, client.name)),
      h("span", { class: "why" }, copiesOf(app, client), at === 0 && why(app, client, nowMs)))),
    without.length > SHOWN && h("span", { class: "why" }, `and ${plural(without.length - SHOWN, "client")} more`)));
}

/** Return a client's copies, and their progress. */
function copiesOf(app, client) {
  const here = app.tasks.flatMap((task) => task.copies.filter((copy) => copy.process === client.process)
    .map((copy) => ({ ...copy, task: task.task })));
  const building = here.filter((copy) => copy.role === "warmup");
  const standbys = here.filter((copy) => copy.role === "standby");
  return [
    building.length > 0 && `${plural(building.length, "warm-up")} being built (${named(building)})${soonest(building)}. `,
    standbys.length > 0 && `${plural(standbys.length, "standby", "standbys")} there. `,
  ].filter(Boolean).join("");
}

/** Return when a task may move to a client, and why none has yet. */
function why(app, client, nowMs) {
  const building = app.tasks.some((task) => task.copies.some((copy) => copy.process === client.process && copy.role === "warmup"));
  const planned = (app.leader_movements ?? []).filter((move) => move.to === client.process);
  const first = PLANS.map((kind) => planned.find((move) => move.kind === kind)).find(Boolean) ?? planned[0];
  return [
    building && `A task moves here at the first rebalance that finds its copy caught up${due(app.probing, nowMs)}. `,
    !building && !planned.length && nothingPlanned(app),
    first && `Why ${first.task} is not here yet${app.as_of_ms > 0 ? `, as decided ${ago(app.as_of_ms, nowMs)}` : ""}: ${reasonBy(first.reason, clientNames(app))}`,
  ].filter(Boolean).join("");
}

const named = (copies) => {
  const tasks = copies.map((copy) => copy.task).sort(naturally);
  return tasks.slice(0, TASKS_NAMED).join(", ") + (tasks.length > TASKS_NAMED ? ", …" : "");
};

function soonest(copies) {
  const etas = copies.map((copy) => copy.eta_seconds).filter(known);
  return etas.length ? `, the first caught up in about ${duration(Math.min(...etas))}` : "";
}

const due = (probing, nowMs) => (probing?.scheduled && probing.due_ms > 0
  ? `; the next probing rebalance is due ${countdown(probing.due_ms, nowMs)}` : "");

function nothingPlanned(app) {
  const threads = app.clients.reduce((sum, client) => sum + (client.capacity ?? 1), 0);
  return app.tasks.length < threads
    ? `There are only ${plural(app.tasks.length, "task")} for ${plural(threads, "thread")}.`
    : "The leader plans to move no task here.";
}
