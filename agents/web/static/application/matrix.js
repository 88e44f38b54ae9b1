// Clients × tasks of one application: cells if they fit, else a heat map that zooms into cells.

import { h } from "../shell/dom.js";
import { count, naturally, plural } from "../shell/format.js";
import { shortened } from "../shell/names.js";
import { band, cellId, measured } from "./cells.js";
import { clientNames } from "./copies.js";
import { heatmap } from "./heatmap.js";

const NAME_WIDTH = { narrow: 92, wide: 150 };
const NAME_CHARACTERS = { narrow: 11, wide: 17 };
const ROW_PX = 27;
/** A taller matrix becomes a heat map. */
const CELLS_MOST_PX = 1000;
const ZOOMED_CLIENTS = 10;

/** Describe the matrix of an application's tasks. `ui`: the width, the focus, and the zoomed cell. */
export function matrix(application, tasks, ui, nowMs) {
  const narrow = ui.width < 600 ? "narrow" : "wide";
  const size = { width: ui.width, nameWidth: NAME_WIDTH[narrow] };
  const blocks = bands(tasks);
  const names = shortened(application.clients.map((client) => client.name), NAME_CHARACTERS[narrow]);
  const context = { application, nowMs, names, clientNames: clientNames(application), clients: application.clients };
  if (height(blocks, application.clients.length, size) <= CELLS_MOST_PX) {
    return h("div", { class: "matrix", "data-matrix": true }, cells(context, blocks, size, ui.focus));
  }
  const zoomed = window_(application, blocks, size, ui.query);
  return h("div", { class: "matrix" },
    heatmap(context, blocks, size, zoomed, ui),
    zoomed
      ? h("div", { key: "cells", "data-matrix": true },
        h("p", { class: "tools" },
          h("span", { class: "quiet" }, `${plural(zoomed.clients.length, "client")} and ${plural(zoomed.block.tasks.length, "task")} of ${
            count(application.clients.length)} × ${count(tasks.length)}, framed above.`),
          h("button", { type: "button", "data-choose": "zoom", "data-value": "" }, "Close cells")),
        cells({ ...context, clients: zoomed.clients }, [zoomed.block], size, ui.focus))
      : h("p", { key: "how", class: "quiet" }, "Each row is a client, each column a task, and each dot a copy in the colour of its role. ",
        "Red shows how far a copy lags beyond the acceptable lag; a line without a dot is a recommended copy. Click or press Enter to see the cells there; point at a cell for one copy.",
        names.common && ` Names of clients leave out ${names.common}`));
}

function cells(context, blocks, size, focus) {
  const all = { ...context, focus: focusable(context.clients, blocks, focus) };
  return blocks.map((block) => band(all, block, size));
}

/** Return the cell that is the matrix' tab stop; arrow keys move from there. */
function focusable(clients, blocks, focus) {
  const there = blocks.some(({ tasks }) => tasks.some((task) => clients.some((client) => cellId(task, client) === focus)));
  return there ? focus : cellId(blocks[0].tasks[0], clients[0]);
}

function height(blocks, clients, { width, nameWidth }) {
  return blocks.reduce((sum, { tasks }) =>
    sum + 24 + Math.ceil(tasks.length / measured(width, nameWidth, tasks.length).fit) * (clients * ROW_PX + 24), 0);
}

/** Return the clients and tasks around the zoomed cell, as many as fit; null without zoom. */
function window_(application, blocks, { width, nameWidth }, query) {
  const [wanted, process] = (query.get("zoom") ?? "").split("|");
  const block = blocks.find(({ tasks }) => tasks.some((task) => task.task === wanted));
  if (!block) return null;
  const fit = measured(width, nameWidth, block.tasks.length).fit;
  const tasks = around(block.tasks, block.tasks.findIndex((task) => task.task === wanted), fit);
  const clients = around(application.clients, application.clients.findIndex((each) => each.process === process), ZOOMED_CLIENTS);
  return { clients, block: { ...block, tasks } };
}

function around(all, at, most) {
  const start = Math.max(0, Math.min(Math.max(at, 0) - Math.floor(most / 2), all.length - most));
  return all.slice(start, start + most);
}

/** Group tasks by subtopology, both in numerical order. */
function bands(tasks) {
  const bySubtopology = Map.groupBy(tasks, (task) => task.task.slice(0, task.task.lastIndexOf("_")));
  return [...bySubtopology]
    .sort(([a], [b]) => naturally(a, b))
    .map(([subtopology, members]) => ({ subtopology, tasks: [...members].sort((a, b) => naturally(a.task, b.task)) }));
}
