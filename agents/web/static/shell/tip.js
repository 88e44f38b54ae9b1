// A tooltip for the element under the pointer or the focus.

import { h, patch } from "./dom.js";

const at = () => document.getElementById("tip");

/** Show lines, the first as their title, beside a box of the window. */
export function showTip([title, ...rest], box) {
  const tip = at();
  patch(tip, [h("b", null, title), ...rest.map((line) => h("span", null, line))]);
  tip.hidden = false;
  place(tip, box);
}

/** Hide the tip. */
export function hideTip() { at().hidden = true; }

/** Show tips with the lines that `linesOf(element, event)` returns, null for none. */
export function installTip(linesOf) {
  const look = (event) => {
    const element = event.target.closest?.("[data-cell]");
    const lines = element && linesOf(element);
    if (lines) showTip(lines, element.getBoundingClientRect());
    else if (!event.target.closest?.("[data-tips]")) hideTip();
  };
  document.addEventListener("pointerover", look);
  document.addEventListener("focusin", look);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
  document.addEventListener("scroll", hideTip, { capture: true, passive: true });
}

function place(tip, box) {
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.max(8, Math.min(box.left, innerWidth - width - 8));
  const below = box.bottom + 6;
  const top = below + height > innerHeight ? Math.max(8, box.top - height - 6) : below;
  tip.style.left = `${left}px`;
  tip.style.top = `${top}px`;
}
