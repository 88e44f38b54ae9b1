// Why a group lags: asked on demand, the true cause first.

import { served } from "../shell/address.js";
import { h } from "../shell/dom.js";
import { known } from "../shell/format.js";

/** The group that the service was asked about, and its answer. */
let asked = { of: null, answer: null };

/** Describe a button, or the answer once `why=1` is in the address. */
export function why(name, ui) {
  if (ui.query.get("why") !== "1") {
    asked = { of: null, answer: null };
    return h("p", { key: "why", class: "tools" }, h("button", { type: "button", "data-choose": "why", "data-value": "1" }, "Why?"));
  }
  if (asked.of !== name) {
    asked = { of: name, answer: null };
    ask(name, ui.redraw);
  }
  const { answer } = asked;
  return h("div", { key: "why", role: "region", "aria-label": "Why", "aria-live": "polite" },
    answer === null ? h("p", { class: "quiet" }, "The service looks for causes.")
      : known(answer.error) ? h("p", { class: "unsure" }, `Not known: ${answer.error}`)
        : links(answer),
    h("button", { type: "button", class: "aside", "data-choose": "why", "data-value": "" }, "Close"));
}

function links({ links: all, not_known: unknown, left_out: more }) {
  return [
    all.length === 0 && h("p", null, "No cause is known."),
    h("ol", { class: "points" }, all.map((link, at) => h("li", { key: at }, h("bdi", null, link.text),
      link.sure !== "certain" && h("span", { class: "quiet" }, ` (${link.sure})`)))),
    more > 0 && h("p", { class: "quiet" }, `${more} more`),
    unknown.length > 0 && h("p", { class: "quiet" }, "Not known: ", h("bdi", null, unknown.join("; "))),
  ];
}

async function ask(name, redraw) {
  let answer;
  try {
    const response = await fetch(served(`api/groups/${encodeURIComponent(name)}/why`), { cache: "no-store" });
    answer = await response.json();
  } catch {
    answer = { error: "the service did not answer" };
  }
  if (asked.of !== name) return;
  asked = { of: name, answer };
  redraw();
}
