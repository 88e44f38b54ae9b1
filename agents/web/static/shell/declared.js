// What the service declares with each view: verdicts, with their colours and signs, and columns.

import { h } from "./dom.js";
import { UNKNOWN, known, written } from "./format.js";

const CLASSES = { green: "ok", yellow: "unsure", red: "bad" };
const NONE = { unassessed: null, terms: [] };
let declared = { verdicts: {}, columns: {} };

/** Take over what a view came with. */
export function declare(next) {
  declared = next ?? declared;
}

/** The columns of a table: what of a row is in each, and how that is written. */
export const columns = (table) => declared.columns[table] ?? [];

/** The headings of declared columns for `sortableHead`; those of figures sort, the greatest first. */
export const more = (table) => columns(table).map(({ page, right, of: [name] }) => ({
  id: name, name: page, number: right, spare: true,
  compare: right ? (a, b) => (b[name] ?? -Infinity) - (a[name] ?? -Infinity) : undefined,
}));

/** The cells of a row in those columns. */
export const cells = (table, row) => columns(table).map(({ of, unit = "text", right }) =>
  h("td", { key: of[0], class: `${right ? "number " : ""}spare together` }, written(unit, of.map((name) => row[name]))));

/** The words for a kind of verdicts, the worst first. */
export const worst = (kind) => (declared.verdicts[kind] ?? NONE).terms.map(({ word }) => word).reverse();

/** How bad a verdict is: the more, the worse. One that isn't there yet is as what isn't known. */
export function severity(kind, word) {
  const { unassessed, terms } = declared.verdicts[kind] ?? NONE;
  const rank = terms.findIndex((term) => term.word === (word ?? unassessed));
  return rank < 0 ? terms.length : rank;
}

/** How a verdict looks: its class, its sign, and what it means; a word of a newer service as what isn't known. */
export function look(kind, word) {
  const { colour, sign, meaning } = (declared.verdicts[kind] ?? NONE).terms.find((term) => term.word === word) ?? {};
  return [CLASSES[colour] ?? "unsure", sign ?? "?", meaning ?? word];
}

/** Describe a verdict: its sign and its word, in its colour. */
export function verdict(kind, word) {
  if (!known(word)) return h("span", { class: "quiet" }, UNKNOWN);
  const [colour, sign] = look(kind, word);
  return h("span", { class: `${colour} together` }, h("span", { class: "sign", "aria-hidden": "true" }, sign), ` ${word}`);
}
