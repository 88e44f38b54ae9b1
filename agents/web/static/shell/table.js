// Tables whose columns sort, and whose rows come in portions.

import { h } from "./dom.js";
import { count } from "./format.js";

/** Head a table: columns of words, columns of numbers; `spare` are those that a narrow page leaves out. */
export function head(words, numbers, ...spare) {
  const column = (kind) => (word) =>
    h("th", { scope: "col", class: `${kind}${spare.includes(word) ? " spare" : ""}` }, word);
  return h("thead", null, h("tr", null, words.map(column("")), numbers.map(column("number"))));
}

/**
 * Head a table that sorts. `columns`: { id, name, number?, spare?, compare? }; without `compare` a
 * column doesn't sort. `sort`: the chosen id, with `-` before it for the other way round.
 */
export function sortableHead(columns, sort, choice = "sort") {
  return h("thead", null, h("tr", null, columns.map((column) => {
    const kind = `${column.number ? "number" : ""}${column.spare ? " spare" : ""}`;
    if (!column.compare) return h("th", { key: column.id, scope: "col", class: kind }, column.name);
    const chosen = sort === column.id || sort === `-${column.id}`;
    const next = sort === column.id ? `-${column.id}` : column.id;
    return h("th", { key: column.id, scope: "col", class: kind,
      "aria-sort": chosen ? (sort.startsWith("-") ? "ascending" : "descending") : null },
    h("button", { type: "button", class: "sort", "data-choose": choice, "data-value": next, title: column.title },
      column.name, h("span", { class: "way", "aria-hidden": "true" }, chosen ? (sort.startsWith("-") ? " ▴" : " ▾") : "")));
  })));
}

/** Sort rows by the chosen column: worst or greatest first; the service's order where none is chosen. */
export function sorted(rows, columns, sort) {
  if (!sort) return rows;
  const column = columns.find((each) => each.id === sort.replace(/^-/, ""));
  if (!column?.compare) return rows;
  const way = sort.startsWith("-") ? -1 : 1;
  return [...rows].sort((a, b) => way * column.compare(a, b));
}

/** Say how many rows are left out, with a button that shows more of them; nothing where all are shown. */
export function more(shown, all, choice, step, noun = "") {
  return all > shown && h("p", { class: "more" },
    h("button", { type: "button", "data-choose": choice, "data-value": String(shown + step) },
      `Show ${count(Math.min(step, all - shown))} more`),
    all - shown > step && h("span", { class: "quiet" }, ` ${count(all - shown)} left out${noun}.`));
}

/** Return how many rows to show: what was chosen, or `most`. */
export const portion = (query, choice, most) => Math.max(most, Math.min(5000, Number(query.get(choice)) || 0));
