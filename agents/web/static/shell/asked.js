// What a visitor asks the service for with a button: shown below it, and kept in the address.

import { served } from "./address.js";
import { h } from "./dom.js";
import { known } from "./format.js";

/** How long an answer is shown before it is asked for again. */
const EVERY_MS = 10_000;
/** By choice: the path that was asked, when, and the answer. */
const asked = new Map();

/** Describe a button; once its `choice` is in the address, what `describe(answer)` makes of the JSON at `path`. */
export function asking({ choice, button, title, path }, ui, describe) {
  if (ui.query.get(choice) !== "1") {
    asked.delete(choice);
    return h("p", { key: choice, class: "tools" }, h("button", { type: "button", "data-choose": choice, "data-value": "1" }, button));
  }
  if (asked.get(choice)?.path !== path) asked.set(choice, { path, answer: null, atMs: -Infinity });
  const question = asked.get(choice);
  if (performance.now() - question.atMs > EVERY_MS) {
    question.atMs = performance.now();
    ask(question, () => asked.get(choice) === question && ui.redraw());
  }
  const { answer } = question;
  return h("div", { key: choice, role: "region", "aria-label": title, "aria-live": "polite" },
    answer === null ? h("p", { class: "quiet" }, "Waiting for the service.")
      : known(answer.error) ? h("p", { class: "unsure" }, `Not known: ${answer.error}`)
        : describe(answer),
    h("button", { type: "button", class: "aside", "data-choose": choice, "data-value": "" }, "Close"));
}

async function ask(question, redraw) {
  try {
    const response = await fetch(served(question.path), { cache: "no-store" });
    question.answer = await response.json();
  } catch {
    question.answer = { error: "the service did not answer" };
  }
  redraw();
}
