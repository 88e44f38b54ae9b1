// Clients × tasks as a table: a cell for each copy, with its role, lag and movement.

import { columns } from "../shell/declared.js";
import { h } from "../shell/dom.js";
import { lagShare, plural } from "../shell/format.js";
import { cell as contents } from "../shell/table.js";
import { clientTitle, indexed, isBehind, isSoft, lines, movesOf } from "./copies.js";

const GAP = 2;

/** Return the width and number of cells in a band, for a number of tasks and a width in px. */
export function measured(width, nameWidth, tasks) {
  const free = width - nameWidth - 2 * GAP;
  const cell = Math.max(30, Math.min(72, Math.floor(free / tasks) - GAP));
  return { cell, fit: Math.max(4, Math.floor(free / (cell + GAP))) };
}

/** Describe the bands of a subtopology's tasks, as many in each as fit. */
export function band(context, { subtopology, tasks }, { width, nameWidth }) {
  const { cell, fit } = measured(width, nameWidth, tasks.length);
  const chunks = [];
  for (let at = 0; at < tasks.length; at += fit) chunks.push(tasks.slice(at, at + fit));
  return h("div", { key: subtopology, class: cell >= 52 ? "band roomy" : "band",
    "--cell": `${cell}px`, "--name": `${nameWidth}px` },
  h("h4", null, `Subtopology ${subtopology}`,
    h("span", { class: "quiet" }, ` ${plural(tasks.length, "task")}`,
      tasks.every((task) => task.stateful === false) && ", stateless")),
  chunks.map((chunk) => table(context, chunk)));
}

/** Return a cell's key: its task and its client's process. */
export const cellId = (task, client) => `${task.task}|${client.process}`;

function table(context, tasks) {
  const { application, clients } = context;
  const heads = tasks.map((task) => h("th", { scope: "col", title: task.task,
    class: clients.some((client) => movesOf(application, client, task).length) ? "moving" : null },
  task.task.slice(task.task.lastIndexOf("_") + 1)));
  return h("table", { key: tasks[0].task, role: "grid",
    "aria-label": `Copies of tasks ${tasks[0].task} to ${tasks.at(-1).task}` },
    h("thead", null, h("tr", null,
      h("th", { scope: "col", class: "common", title: context.names.common ? `all names: ${context.names.common}` : null },
        context.names.common || h("span", { class: "unseen" }, "client")),
      heads)),
    h("tbody", null, clients.map((client) =>
      h("tr", { key: client.process },
        h("th", { scope: "row", title: clientTitle(application, client) },
          h("bdi", { class: "name" }, context.names.of(client.name)),
          client.leader && h("span", { class: "leader", title: "leads the group: it decides" }, "leader")),
        tasks.map((task) => cell(context, client, task))))));
}

function cell(context, client, task) {
  const { application, focus, nowMs } = context;
  const copy = indexed(application).copies.get(task.task)?.get(client.process);
  const moves = movesOf(application, client, task);
  const id = cellId(task, client);
  const arrives = moves.some((move) => move.to === client.process);
  const place = arrives ? " to" : moves.length ? " from" : "";
  const label = lines(application, client, task, copy, context.clientNames).join(". ");
  const base = { "data-cell": id, "data-row": client.process, tabindex: id === focus ? 0 : -1, "aria-label": label };
  if (copy === undefined) return h("td", { ...base, class: `empty${place}` }, arrives && "+");
  const soft = isSoft(copy, nowMs) ? " soft" : "";
  return h("td", { ...base, class: `copy ${copy.role}${isBehind(application, copy) ? " behind" : ""}${soft}${place}`,
    "--share": lagShare(copy.lag, application.acceptable_recovery_lag).toFixed(3) },
  columns("matrix").map((column) => contents(copy, column, context).says));
}
