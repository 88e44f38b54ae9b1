// Clients × tasks of one application, the copies as cells.

import { h } from "./dom.js";
import { UNKNOWN, ago, count, duration, known, lagShare, naturally, plural, short } from "./format.js";

/** Roles in the order of the legend: their letter, name and what they mean. */
export const ROLES = {
  active: { letter: "A", name: "active", means: "processes the task" },
  standby: { letter: "S", name: "standby", means: "a copy kept ready" },
  warmup: { letter: "W", name: "warm-up", means: "a copy that is built before the task moves here" },
  restoring: { letter: "R", name: "restoring", means: "owns the task, and restores its state first" },
  none: { letter: "·", name: "no role", means: "state on disk that nobody asked for" },
};

const PROVENANCE = {
  running: "a running active processes at the end of its changelog: it has no figure",
  reported: "reported by the client in this generation",
  measured: "told by the application since",
  estimated: "estimated: an upper bound, the changelog's end may have grown since",
  unknown: "not known",
};

const NAME_WIDTH = { narrow: 92, wide: 150 };

/** Describe the bands of the matrix: subtopologies, cut into as many tasks as fit `width` px. */
export function matrix(application, { width, tasks, focus }) {
  const blocks = bands(tasks);
  const context = {
    application,
    focus: focusable(application, blocks, focus),
    names: clientNames(application),
  };
  const nameWidth = width < 600 ? NAME_WIDTH.narrow : NAME_WIDTH.wide;
  return blocks.map((band) => {
    const free = width - nameWidth - 24;
    const cell = Math.max(30, Math.min(72, Math.floor(free / band.tasks.length)));
    const fit = Math.max(4, Math.floor(free / cell));
    const chunks = [];
    for (let at = 0; at < band.tasks.length; at += fit) chunks.push(band.tasks.slice(at, at + fit));
    return h("div", { key: band.subtopology, class: cell >= 52 ? "band roomy" : "band",
      "--cell": `${cell}px`, "--name": `${nameWidth}px` },
      h("h4", null, `Subtopology ${band.subtopology}`,
        h("span", { class: "quiet" }, ` ${plural(band.tasks.length, "task")}`,
          band.tasks.every((task) => task.stateful === false) && ", stateless")),
      chunks.map((chunk) => table(context, chunk)));
  });
}

const cellId = (application, task, client) => `${application.group}|${task.task}|${client.process}`;

/** One cell of an application takes the tab key; the arrow keys go on from there. */
function focusable(application, blocks, focus) {
  const ids = blocks.flatMap((band) => band.tasks.flatMap((task) =>
    application.clients.map((client) => cellId(application, task, client))));
  return ids.includes(focus) ? focus : ids[0];
}

function bands(tasks) {
  const bySubtopology = new Map();
  for (const task of tasks) {
    const subtopology = task.task.slice(0, task.task.lastIndexOf("_"));
    if (!bySubtopology.has(subtopology)) bySubtopology.set(subtopology, []);
    bySubtopology.get(subtopology).push(task);
  }
  return [...bySubtopology]
    .sort(([a], [b]) => naturally(a, b))
    .map(([subtopology, members]) => ({
      subtopology,
      tasks: members.sort((a, b) => naturally(a.task, b.task)),
    }));
}

function table(context, tasks) {
  const { application } = context;
  const heads = tasks.map((task) => h("th", { scope: "col", class: application.clients.some((client) => movesOf(application, client, task).length) ? "moving" : null, title: task.task }, task.task.slice(task.task.lastIndexOf("_") + 1)));
  return h("table", { key: tasks[0].task, role: "grid",
    "aria-label": `Copies of tasks ${tasks[0].task} to ${tasks.at(-1).task}` },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, h("span", { class: "unseen" }, "client")),
      heads)),
    h("tbody", null, application.clients.map((client) =>
      h("tr", { key: client.process },
        h("th", { scope: "row", title: clientTitle(application, client) }, h("span", { class: "name" }, client.name),
          client.leader && h("span", { class: "leader", title: "leads the group: it decides" }, "leader")),
        tasks.map((task) => cell(context, client, task))))));
}

function clientTitle(application, client) {
  const roles = application.tasks.flatMap((task) => task.copies)
    .filter((copy) => copy.process === client.process).map((copy) => copy.role);
  const held = Object.entries(ROLES).map(([role, { name }]) => [roles.filter((r) => r === role).length, name])
    .filter(([number]) => number > 0).map(([number, name]) => `${number} ${name}`).join(", ");
  return [`${client.name} at ${client.host ?? "an unknown host"}: ${held || "no copies"}`,
    known(client.capacity) && plural(client.capacity, "thread"), client.leader && "leads the group",
    `process ${client.process}`].filter(Boolean).join(", ");
}

function cell(context, client, task) {
  const { application, focus } = context;
  const copy = task.copies.find((each) => each.process === client.process);
  const moves = movesOf(application, client, task);
  const id = cellId(application, task, client);
  const arrives = moves.some((move) => move.to === client.process);
  const place = arrives ? " to" : moves.length ? " from" : "";
  const base = { "data-cell": id, "data-row": client.process, tabindex: id === focus ? 0 : -1 };
  if (copy === undefined) {
    return h("td", { ...base, class: `empty${place}`,
      "aria-label": lines(application, client, task, copy, context.names).join(". ") },
      arrives && "+");
  }
  const role = ROLES[copy.role] ?? ROLES.none;
  const acceptable = application.acceptable_recovery_lag;
  const behind = known(copy.lag) && copy.lag > (acceptable ?? 0);
  const figure = copy.role === "active" ? "" : known(copy.lag) ? short(copy.lag) : UNKNOWN;
  return h("td", { ...base, class: `copy ${copy.role}${behind ? " behind" : ""}${place}`,
    "--share": lagShare(copy.lag, acceptable).toFixed(3),
    "aria-label": lines(application, client, task, copy, context.names).join(". ") },
    h("b", null, role.letter), h("i", null, figure), known(copy.lag) && h("s", null));
}

/** Say everything of a copy, the title first; `nowMs` adds how old it is. */
export function lines(application, client, task, copy, names, nowMs) {
  const said = [`Task ${task.task} on ${client.name}`];
  if (copy === undefined) {
    said.push("no copy here");
  } else {
    const role = ROLES[copy.role] ?? ROLES.none;
    said.push(`${role.name}: ${role.means}`);
    if (known(copy.lag)) {
      const against = application.acceptable_recovery_lag;
      said.push(`lag ${count(copy.lag)}${known(against) ? `, acceptable ${count(against)}` : ""}`);
    }
    said.push(`lag ${PROVENANCE[copy.provenance] ?? copy.provenance}`);
    if (copy.verdict) {
      const word = copy.verdict.replace("_", " ");
      said.push(`${word}${known(copy.eta_seconds) && copy.eta_seconds > 0
        ? `, caught up in about ${duration(copy.eta_seconds)}` : ""}${copy.why ? `: ${copy.why}` : ""}`);
    }
    if (known(nowMs) && known(copy.as_of_ms)) said.push(`as of ${ago(copy.as_of_ms, nowMs)}`);
  }
  const recommended = movesOf(application, client, task);
  const planned = (application.leader_movements ?? []).filter((move) => move.task === task.task && move.to === client.process
    && !recommended.some((other) => other.to === move.to && other.kind === move.kind));
  for (const move of planned) said.push(`the leader has it ${route(move, names)}, ${move.kind}: ${move.reason}`);
  for (const move of recommended) {
    said.push(`${route(move, names)}, ${move.kind}: ${move.reason}`);
  }
  return said;
}

const indexes = new WeakMap();

/** A task can have several movements: those that begin or end at this client. */
function movesOf(application, client, task) {
  let byTask = indexes.get(application);
  if (byTask === undefined) {
    byTask = Map.groupBy(application.recommendation?.movements ?? [], (move) => move.task);
    indexes.set(application, byTask);
  }
  return (byTask.get(task.task) ?? []).filter((move) => move.to === client.process || move.from === client.process);
}

/** Name the clients of an application by process. */
export const clientNames = (application) =>
  new Map(application.clients.map((client) => [client.process, client.name]));

/** Say from where to where a movement goes. */
export function route(move, names) {
  const to = names.get(move.to) ?? move.to;
  return known(move.from) && move.from !== move.to ? `${names.get(move.from) ?? move.from} → ${to}` : `→ ${to}`;
}
