// The cost of one more instance, requested on demand.

import { served } from "../shell/address.js";
import { h } from "../shell/dom.js";
import { known } from "../shell/format.js";
import { costs } from "./facts.js";

/** The service's answer for the group, and its generation. */
let asked = { of: null, told: null };

/** Describe a question, or its answer once `add=1` is in the address. */
export function adding(app, ui) {
  const term = h("dt", null, "One more instance");
  if (ui.query.get("add") !== "1") {
    return h("div", { key: "adding" }, term, h("dd", null,
      h("button", { type: "button", "data-choose": "add", "data-value": "1" }, "What would it cost?")));
  }
  const of = `${app.group} ${app.generation}`;
  if (asked.of !== of) {
    asked = { of, told: null };
    ask(app.group, of, ui.redraw);
  }
  const { told } = asked;
  return h("div", { key: "adding" }, term, h("dd", null,
    told === null ? h("span", { class: "quiet" }, "Being worked out.")
      : known(told.error) ? h("span", { class: "unsure" }, `Nobody can say: ${told.error}`)
        : [costs(told), h("span", { class: "why" }, "until balanced, with what is under way already")],
    h("button", { type: "button", class: "aside", "data-choose": "add", "data-value": "" }, "Close")));
}

async function ask(group, of, redraw) {
  let told;
  try {
    const answer = await fetch(served(`api/groups/${encodeURIComponent(group)}/cost?add=1`), { cache: "no-store" });
    told = await answer.json();
  } catch {
    told = { error: "the service did not answer" };
  }
  if (asked.of !== of) return;
  asked = { of, told };
  redraw();
}
