// Copies of tasks in words: role, lag, its provenance, and movements.

import { columns, styleOf } from "../shell/declared.js";
import { h } from "../shell/dom.js";
import { UNKNOWN, count, duration, known, plural, short } from "../shell/format.js";
import { isolated } from "../shell/names.js";
import { cell } from "../shell/table.js";

/** Roles in the order of the legend: letter, name and meaning. */
export const ROLES = {
  active: { letter: "A", name: "active", means: "processes the task" },
  standby: { letter: "S", name: "standby", means: "a copy that is kept up to date" },
  warmup: { letter: "W", name: "warm-up", means: "a copy that is built before the task moves here" },
  restoring: { letter: "R", name: "restoring", means: "owns the task, and restores its state first" },
  none: { letter: "·", name: "no role", means: "state on disk that is not assigned" },
};

const PROVENANCE = {
  running: "a running active is at the end of its changelog, and has no figure",
  reported: "reported by the client in this generation",
  measured: "reported by the application since then",
  estimated: "estimated: an upper bound, since the changelog may have grown",
  unknown: "not known",
};
const OLD_MS = 60_000;

/** Return the age of a copy's lag in ms if it is old, else null. */
export const ageOf = (copy, nowMs) =>
  (known(copy.lag) && copy.as_of_ms > 0 && nowMs - copy.as_of_ms > OLD_MS ? nowMs - copy.as_of_ms : null);

/** Return whether a copy's lag is estimated or old: then it is hatched. */
export const isSoft = (copy, nowMs) => known(copy.lag) && (copy.provenance === "estimated" || ageOf(copy, nowMs) !== null);

/** Return a copy's lag in a few characters, with its age if it is old: 9.3K, 2 min old. */
export function lagWithAge(copy, nowMs) {
  if (!known(copy?.lag)) return UNKNOWN;
  const old = ageOf(copy, nowMs);
  return `${short(copy.lag)}${old === null ? "" : `, ${duration(old / 1000)} old`}`;
}

/** Return whether a copy's lag exceeds acceptable.recovery.lag. */
export const isBehind = (application, copy) => known(copy.lag) && copy.lag > (application.acceptable_recovery_lag ?? 0);

/** The renderers of what is in a copy's cell of the matrix, and of what is said of it. */
export const COPY_CELLS = {
  letter: ({ role }) => ({ says: h("b", null, (ROLES[role] ?? ROLES.none).letter) }),
  "short figure": (copy, { of: [name] }) => ({ says: copy.role !== "active"
    && h("i", { "data-figure": known(copy[name]) ? short(copy[name]) : UNKNOWN }) }),
  "lag bar": ({ lag }) => ({ says: known(lag) && h("s", null) }),
  role: ({ role }) => {
    const { name, means } = ROLES[role] ?? ROLES.none;
    return { says: `${name}: ${means}` };
  },
  "copy lag": ({ lag }, column, { application: { acceptable_recovery_lag: against } }) => ({
    says: known(lag) && `lag ${count(lag)}${known(against) ? `, acceptable ${count(against)}` : ""}` }),
  provenance: ({ provenance }) => ({ says: `lag ${PROVENANCE[provenance] ?? provenance}` }),
  "copy verdict": ({ verdict, eta_seconds: eta, why }, column) => ({ says: verdict && `${styleOf(column.verdict, verdict)[2]}${
    known(eta) && eta > 0 ? `, caught up in about ${duration(eta)}` : ""}${why ? `: ${why}` : ""}` }),
  "copy age": ({ as_of_ms: at }, column, { nowMs }) => ({ says: known(nowMs) && at > 0 && `${duration((nowMs - at) / 1000)} old` }),
};

/** Return the lines about a copy, the title first; with `nowMs`, also its age. */
export function lines(application, client, task, copy, names, nowMs) {
  const said = [`Task ${task.task} on ${isolated(client.name)}`];
  if (copy === undefined) {
    said.push("no copy here");
  } else {
    for (const column of columns("copies")) {
      const { says } = cell(copy, column, { application, nowMs });
      if (says && column.of.some((name) => known(copy[name]))) said.push(column.page.heading ? `${column.page.heading} ${says}` : says);
    }
  }
  const recommended = movesOf(application, client, task);
  const planned = (application.leader_movements ?? []).filter((move) => move.task === task.task && move.to === client.process
    && !recommended.some((other) => other.to === move.to && other.kind === move.kind));
  for (const move of planned) said.push(`the leader decided ${route(move, names)}, ${move.kind}: ${reasonBy(move.reason, names)}`);
  for (const move of recommended) {
    said.push(`${route(move, names)}, ${move.kind}: ${reasonBy(move.reason, names)}`);
  }
  return said;
}

/** Return the lines about a client. */
export function clientTitle(application, client) {
  const roles = application.tasks.flatMap((task) => task.copies)
    .filter((copy) => copy.process === client.process).map((copy) => copy.role);
  const held = Object.entries(ROLES).map(([role, { name }]) => [roles.filter((r) => r === role).length, name])
    .filter(([number]) => number > 0).map(([number, name]) => `${number} ${name}`).join(", ");
  return [`${isolated(client.name)} at ${client.host ?? "an unknown host"}: ${held || "no copies"}`,
    known(client.capacity) && plural(client.capacity, "thread"), client.leader && "leads the group",
    `process ${client.process}`].filter(Boolean).join(", ");
}

const PROCESS = /[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}/g;

/** Return a reason with the names of clients instead of processes. */
export const reasonBy = (reason, names) =>
  reason.replace(PROCESS, (process) => (names.has(process) ? isolated(names.get(process)) : process));

const indexes = new WeakMap();

/** Return an application's copies and movements by task and process, made once for each state. */
export function indexed(application) {
  let index = indexes.get(application);
  if (index === undefined) {
    const copies = new Map(application.tasks.map((task) => [task.task, new Map(task.copies.map((copy) => [copy.process, copy]))]));
    const pending = application.pending ?? [];
    index = { copies, pending, moves: Map.groupBy(pending, (move) => move.task) };
    indexes.set(application, index);
  }
  return index;
}

/** Return a task's movements from or to this client. */
export const movesOf = (application, client, task) => (indexed(application).moves.get(task.task) ?? [])
  .filter((move) => move.to === client.process || move.from === client.process);

/** Return whether a task moves, or a copy of it is behind. */
export function isChanging(application, task) {
  return task.copies.some((copy) => copy.role === "warmup" || copy.role === "restoring"
      || (copy.role === "standby" && isBehind(application, copy)))
    || indexed(application).moves.has(task.task);
}

/** Return the names of an application's clients by process. */
export const clientNames = (application) =>
  new Map(application.clients.map((client) => [client.process, client.name]));

/** Return a movement's source and destination; `named(process)` returns a client's name. */
export function routeBy(move, named) {
  return known(move.from) && move.from !== move.to ? `${named(move.from)} → ${named(move.to)}` : `→ ${named(move.to)}`;
}

/** Return the same with full names of clients, by process. */
export const route = (move, names) => routeBy(move, (process) => isolated(names.get(process) ?? process));
