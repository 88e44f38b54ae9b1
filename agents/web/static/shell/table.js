// Tables with sortable columns, whose rows are shown in portions.

import { h } from "./dom.js";
import { count } from "./format.js";

/** Describe a table's head; `spare` columns are left out on a narrow page. */
export function head(words, numbers, ...spare) {
  const column = (kind) => (word) =>
    h("th", { scope: "col", class: `${kind}${spare.includes(word) ? " spare" : ""}` }, word);
  return h("thead", null, h("tr", null, words.map(column("")), numbers.map(column("number"))));
}

/**
 * Describe the head of a sortable table. `columns`: { id, name, number?, spare?, compare? }; without `compare` a
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

/** Sort rows by the chosen column, worst or greatest first; the service's order without one. */
export function sorted(rows, columns, sort) {
  if (!sort) return rows;
  const column = columns.find((each) => each.id === sort.replace(/^-/, ""));
  if (!column?.compare) return rows;
  const way = sort.startsWith("-") ? -1 : 1;
  return [...rows].sort((a, b) => way * column.compare(a, b));
}

/** Describe the number of hidden rows, with a button that shows more; nothing if all are shown. */
export function more(shown, all, choice, step, noun = "") {
  return all > shown && h("p", { class: "more" },
    h("button", { type: "button", "data-choose": choice, "data-value": String(shown + step) },
      `Show ${count(Math.min(step, all - shown))} more`),
    all - shown > step && h("span", { class: "quiet" }, ` ${count(all - shown)} left out${noun}.`));
}

/** Return the number of rows to show: the user's choice, or `most`. */
export const portion = (query, choice, most) => Math.max(most, Math.min(5000, Number(query.get(choice)) || 0));
