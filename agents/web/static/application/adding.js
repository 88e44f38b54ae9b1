// The cost of one more instance, requested on demand.

import { served } from "../shell/address.js";
import { h } from "../shell/dom.js";
import { known } from "../shell/format.js";
import { costs } from "./facts.js";

/** The group and generation that the service was asked about, and its answer. */
let asked = { of: null, answer: null };

/** Describe a question, or its answer once `add=1` is in the address. */
export function adding(app, ui) {
  const term = h("dt", null, "One more instance");
  if (ui.query.get("add") !== "1") {
    return h("div", { key: "adding" }, term, h("dd", null,
      h("button", { type: "button", "data-choose": "add", "data-value": "1" }, "What would it cost?")));
  }
  const of = `${app.group} ${app.generation}`;
  if (asked.of !== of) {
    asked = { of, answer: null };
    ask(app.group, of, ui.redraw);
  }
  const { answer } = asked;
  return h("div", { key: "adding" }, term, h("dd", null,
    answer === null ? h("span", { class: "quiet" }, "The service computes it.")
      : known(answer.error) ? h("span", { class: "unsure" }, `Not known: ${answer.error}`)
        : [costs(answer), h("span", { class: "why" }, "until the group is balanced, movements under way included")],
    h("button", { type: "button", class: "aside", "data-choose": "add", "data-value": "" }, "Close")));
}

async function ask(group, of, redraw) {
  let answer;
  try {
    const response = await fetch(served(`api/groups/${encodeURIComponent(group)}/cost?add=1`), { cache: "no-store" });
    answer = await response.json();
  } catch {
    answer = { error: "the service did not answer" };
  }
  if (asked.of !== of) return;
  asked = { of, answer };
  redraw();
}
