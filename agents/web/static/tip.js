// What is known of the copy under the pointer or the focus.

import { h, patch } from "./dom.js";
import { clientNames, lines } from "./matrix.js";

/** Show a tip for matrix cells; `state()` gives the newest state, `now()` the service's clock in ms. */
export function installTip(state, now) {
  const tip = document.getElementById("tip");

  const show = (cell) => {
    const found = find(state(), cell);
    if (found === null) return hide();
    const { app, task, client, copy } = found;
    const [title, ...rest] = lines(app, client, task, copy, clientNames(app), now());
    patch(tip, [h("b", null, title), ...rest.map((line) => h("span", null, line))]);
    tip.hidden = false;
    place(tip, cell.getBoundingClientRect());
    return undefined;
  };
  const hide = () => { tip.hidden = true; };

  document.addEventListener("pointerover", (event) => {
    const cell = event.target.closest?.("[data-cell]");
    if (cell) show(cell);
    else hide();
  });
  document.addEventListener("focusin", (event) => {
    const cell = event.target.closest("[data-cell]");
    if (cell) show(cell);
    else hide();
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  document.addEventListener("scroll", hide, { capture: true, passive: true });
}

function find(state, cell) {
  const [process, group] = [cell.dataset.row, cell.closest("[data-matrix]")?.dataset.matrix];
  const app = (state?.applications ?? []).find((each) => each.group === group);
  const client = app?.clients.find((each) => each.process === process);
  const name = cell.dataset.cell.slice(group.length + 1, -(process.length + 1));
  const task = app?.tasks.find((each) => each.task === name);
  if (!client || !task) return null;
  return { app, task, client, copy: task.copies.find((each) => each.process === process) };
}

function place(tip, box) {
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.max(8, Math.min(box.left, innerWidth - width - 8));
  const below = box.bottom + 6;
  const top = below + height > innerHeight ? Math.max(8, box.top - height - 6) : below;
  tip.style.left = `${left}px`;
  tip.style.top = `${top}px`;
}
