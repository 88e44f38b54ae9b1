// Tables whose columns the service declares, sortable ones too, whose rows are shown in portions.

import { columns, severity } from "./declared.js";
import { h } from "./dom.js";
import { count, known, naturally, written } from "./format.js";

/** The renderers of cells by name: (row, column, context) returns { says, class?, title? }. */
let renderers = {};

/** Set the renderers that declarations may name. */
export function installCells(all) {
  renderers = all;
}

/** Return a cell's contents, class and title: by its column's renderer, else its figures in their unit. */
export function cell(row, column, context) {
  const { of, unit = "text", name, right, page: { cell: renderer } } = column;
  if (renderers[renderer]) return renderers[renderer](row, column, context); // a newer service may name others
  return { says: written(unit, of.map((each) => row[each]), context.nowMs), class: name ? "name fixed" : right ? "" : "together" };
}

/**
 * Describe a declared table. `key(row)`; `about(row)`: what stands below a row, over all columns;
 * `sort`: the chosen order of a sortable table; `context`: what renderers need beside the row.
 */
export function table(of, rows, { kind, key, about = () => null, sort, ...context }) {
  const all = columns(of);
  return h("table", { class: `rows ${kind}` }, head(all, sort), h("tbody", null, rows.map((row) => {
    const below = about(row);
    return [
      h("tr", { key: key(row) }, all.map((column) => drawn(row, column, context))),
      below && h("tr", { key: `about ${key(row)}`, class: "about" }, h("td", { colspan: all.length }, below)),
    ];
  })));
}

function drawn(row, column, context) {
  const { says, title, class: kind } = cell(row, column, context);
  return h("td", { key: idOf(column), class: classOf(column, kind), title: title ?? column.page.title ?? null }, says);
}

/** A column's id in addresses. */
const idOf = ({ of, page }) => page.id ?? of[0];
const classOf = ({ right, page }, kind) => [right && "number", kind, page.spare && "spare"].filter(Boolean).join(" ") || null;

/** Describe the head; `sort`: the chosen id, with `-` before it for the other way round. */
function head(all, sort) {
  return h("thead", null, h("tr", null, all.map((column) => {
    const { heading, page } = column;
    const id = idOf(column);
    const name = page.heading ?? heading;
    const kind = classOf(column);
    if (sort === undefined || page.sorts === false) return h("th", { key: id, scope: "col", class: kind }, name);
    const chosen = sort === id || sort === `-${id}`;
    const next = sort === id ? `-${id}` : id;
    return h("th", { key: id, scope: "col", class: kind,
      "aria-sort": chosen ? (sort.startsWith("-") ? "ascending" : "descending") : null },
    h("button", { type: "button", class: "sort", "data-choose": "sort", "data-value": next, title: page.title },
      name, h("span", { class: "way", "aria-hidden": "true" }, chosen ? (sort.startsWith("-") ? " ▴" : " ▾") : "")));
  })));
}

/** Sort rows by the chosen column, worst or greatest first; the service's order without one. */
export function sorted(of, rows, sort) {
  const column = sort && columns(of).find((each) => idOf(each) === sort.replace(/^-/, ""));
  if (!column || column.page.sorts === false) return rows;
  const way = sort.startsWith("-") ? -1 : 1;
  const compare = orderOf(column);
  return [...rows].sort((a, b) => way * compare(a, b));
}

/** Return how a column orders rows: the worst verdict, the greatest figure or the first name first. */
function orderOf({ verdict, right, of }) {
  const greatest = (name) => (a, b) => (known(b[name]) ? b[name] : -Infinity) - (known(a[name]) ? a[name] : -Infinity) || 0;
  const [name] = of;
  if (verdict) {
    return (a, b) => severity(verdict, b[name]) - severity(verdict, a[name])
      || greatest("lag_seconds")(a, b) || greatest("lag")(a, b);
  }
  if (right) return greatest(name);
  return (a, b) => of.reduce((way, each) => way || naturally(a[each] ?? "", b[each] ?? ""), 0);
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
