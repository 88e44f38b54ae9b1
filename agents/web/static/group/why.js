// Why a group lags: asked on demand, the true cause first.

import { asking } from "../shell/asked.js";
import { h } from "../shell/dom.js";

/** Describe a button, or the causes once they were asked for. */
export function why(name, ui) {
  const path = `api/groups/${encodeURIComponent(name)}/why`;
  return asking({ choice: "why", button: "Why?", title: "Why", path }, ui, links);
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
