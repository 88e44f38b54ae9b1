// Clients × tasks, too many for cells: a canvas with a dot for each copy, for pointer, keys and zoom.

import { h } from "../shell/dom.js";
import { lagShare, plural } from "../shell/format.js";
import { hideTip, showTip } from "../shell/tip.js";
import { indexed, isBehind, isSoft, lines } from "./copies.js";
import { boxOf, cellAt, laidOut, walked } from "./places.js";

const NAMED_FROM_PX = 10;

/** The current drawing and its cursor; a page has one application. */
let shown = null;

/** Describe the heat map of blocks of tasks; `zoomed`: the framed part. */
export function heatmap(context, blocks, { width, nameWidth }, zoomed, ui) {
  const { application, nowMs } = context;
  const { pieces, height, cell } = laidOut(blocks, application.clients.length, width, nameWidth);
  ui.after.push(() => {
    const canvas = document.querySelector("[data-heat]");
    shown = { context, clients: application.clients, pieces, cell, zoomed, nameWidth, cursor: shown?.cursor };
    shown.paint = () => paint(canvas, width, height, nowMs);
    shown.paint();
  });
  const label = `Heat map: ${plural(application.clients.length, "client")} down, ${
    plural(application.tasks.length, "task")} across. Arrow keys move, Enter shows the cells around.`;
  return h("div", { key: "heat", class: "heat", "data-tips": true },
    h("div", { class: "heatmap", tabindex: 0, role: "application", "aria-roledescription": "heat map", "aria-label": label,
      "aria-describedby": "heat-cell", "--height": `${height}px` },
    h("canvas", { "data-heat": true, "aria-hidden": "true", opaque: true })),
    h("p", { id: "heat-cell", class: "unseen", role: "status", opaque: true }));
}

function paint(canvas, width, height, nowMs) {
  if (canvas === null) return;
  const scale = devicePixelRatio || 1;
  const { context: { application, clients, names }, pieces, cell, zoomed, nameWidth } = shown;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
  const ctx = canvas.getContext("2d");
  ctx.scale(scale, scale);
  const colour = colours();
  const gap = cell.w >= 4 && cell.h >= 4 ? 1 : 0;
  const { copies, moves } = indexed(application);
  const rowOf = new Map(clients.map((client, at) => [client.process, at]));
  for (const { tasks, x, y } of pieces) {
    ctx.fillStyle = colour.empty;
    ctx.fillRect(x, y, tasks.length * cell.w, clients.length * cell.h);
    tasks.forEach((task, at) => {
      for (const [process, copy] of copies.get(task.task) ?? []) {
        const row = rowOf.get(process);
        if (row === undefined) continue;
        const [left, top] = [x + at * cell.w, y + row * cell.h];
        ctx.globalAlpha = isSoft(copy, nowMs) ? 0.6 : 1;
        ctx.fillStyle = colour[copy.role] ?? colour.none;
        ctx.fillRect(left, top, Math.max(1, cell.w - gap), cell.h - gap);
        if (!isBehind(application, copy)) continue;
        // The excess over the acceptable lag: from half the cell to nearly all of it.
        const share = lagShare(copy.lag, application.acceptable_recovery_lag);
        ctx.fillStyle = colour.behind;
        ctx.fillRect(left, top + (cell.h - gap) * (1 - share), cell.w - gap, (cell.h - gap) * share);
      }
      ctx.globalAlpha = 1;
      for (const move of moves.get(task.task) ?? []) {
        const row = rowOf.get(move.to);
        if (row === undefined || copies.get(task.task)?.has(move.to)) continue; // an existing copy shows its role
        ctx.fillStyle = colour.ink;
        ctx.fillRect(x + at * cell.w, y + row * cell.h, cell.w - gap, Math.max(1, Math.floor(cell.h / 4)));
      }
    });
    if (cell.h >= NAMED_FROM_PX) name(ctx, clients, names, y, cell.h, colour);
    if (zoomed) frame(ctx, { tasks, x, y }, clients, cell, zoomed, colour.focus);
  }
  if (cell.h < NAMED_FROM_PX) {
    ctx.fillStyle = colour.quiet;
    ctx.font = "11px system-ui, sans-serif";
    for (const { tasks, y } of pieces) {
      ctx.fillText(range(tasks), 0, y + 11, nameWidth - 6);
      if (clients.length * cell.h >= 28) ctx.fillText(plural(clients.length, "client"), 0, y + 26, nameWidth - 6);
    }
  }
  cursor(ctx, colour);
}

/** Return the range of tasks of a piece: 0_0 – 0_124. */
const range = (tasks) => (tasks.length > 1 ? `${tasks[0].task} – ${tasks.at(-1).task}` : tasks[0].task);

function name(ctx, clients, names, y, height, colour) {
  ctx.fillStyle = colour.ink;
  ctx.font = `${Math.min(12, height)}px system-ui, sans-serif`;
  ctx.textBaseline = "middle";
  clients.forEach((client, row) => ctx.fillText(names.of(client.name), 0, y + (row + 0.5) * height));
  ctx.textBaseline = "alphabetic";
}

function frame(ctx, { tasks, x, y }, clients, cell, zoomed, colour) {
  const first = tasks.indexOf(zoomed.block.tasks[0]);
  const last = tasks.indexOf(zoomed.block.tasks.at(-1));
  if (first < 0 && last < 0) return;
  const [from, to] = [Math.max(first, 0), last < 0 ? tasks.length - 1 : last];
  const row = clients.indexOf(zoomed.clients[0]);
  ctx.strokeStyle = colour;
  ctx.lineWidth = 2;
  ctx.strokeRect(x + from * cell.w, y + row * cell.h, (to - from + 1) * cell.w, zoomed.clients.length * cell.h);
}

function cursor(ctx, colour) {
  const box = shown.cursor && boxOf(shown, shown.cursor);
  if (!box) return;
  ctx.strokeStyle = colour.focus;
  ctx.lineWidth = 2;
  ctx.strokeRect(box.x - 1.5, box.y - 1.5, shown.cell.w + 2, shown.cell.h + 2);
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (variable) => style.getPropertyValue(variable).trim();
  return { active: of("--active"), standby: of("--standby-dot"), warmup: of("--warmup"), restoring: of("--restoring"),
    none: of("--quiet"), behind: of("--behind"), empty: of("--empty"), ink: of("--ink"), quiet: of("--quiet"), focus: of("--focus") };
}

function linesOf({ task, client }) {
  const { context: { application, clients, clientNames, nowMs } } = shown;
  const of = clients.find((each) => each.process === client);
  const found = application.tasks.find((each) => each.task === task);
  return of && found && lines(application, of, found, indexed(application).copies.get(task)?.get(client), clientNames, nowMs);
}

function tell(canvas, place) {
  const said = linesOf(place);
  const at = boxOf(shown, place);
  if (!said || !at) return;
  const box = canvas.getBoundingClientRect();
  showTip(said, { left: box.left + at.x + 8, top: box.top + at.y, bottom: box.top + at.y + shown.cell.h });
}

/** Handle pointer and keys on the heat map; `onZoom("task|process")` gets where to zoom in. */
export function installHeatmap(onZoom) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => shown?.paint());
  document.addEventListener("pointermove", (event) => {
    if (!event.target.matches?.("[data-heat]") || !shown) return;
    const place = cellAt(shown, event.offsetX, event.offsetY);
    if (place) tell(event.target, place);
    else hideTip();
  });
  document.addEventListener("click", (event) => {
    if (!event.target.matches?.("[data-heat]") || !shown) return;
    const place = cellAt(shown, event.offsetX, event.offsetY);
    if (!place) return;
    shown.cursor = place;
    onZoom(`${place.task}|${place.client}`);
  });
  document.addEventListener("keydown", (event) => {
    if (!event.target.matches?.(".heatmap") || !shown || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter" && shown.cursor) {
      onZoom(`${shown.cursor.task}|${shown.cursor.client}`);
    } else {
      const next = walked(shown, event.key);
      if (!next) return;
      shown.cursor = next;
      document.getElementById("heat-cell").textContent = (linesOf(next) ?? []).join(". ");
      shown.paint();
      tell(event.target.firstChild, next);
    }
    event.preventDefault();
  });
}
