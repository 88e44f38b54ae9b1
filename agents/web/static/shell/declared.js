// The service's declarations, sent with each view: verdicts with colours and signs, and columns.

import { h } from "./dom.js";
import { UNKNOWN, known } from "./format.js";

const CLASSES = { green: "ok", yellow: "unsure", red: "bad" };
const NONE = { unassessed: null, terms: [] };
let declared = { verdicts: {}, columns: {}, causes: {} };

/** Keep a view's declarations. */
export function declare(next) {
  declared = next ?? declared;
}

/** Return the columns of a table: each with the fields of a row, their unit, and what draws it on the page. */
export const columns = (table) => declared.columns[table] ?? [];

/** Return the words for a cause of a rebalance. */
export const causeWords = (kind) => declared.causes?.[kind] ?? kind.replaceAll("_", " ");

/** Return the verdicts of a kind, the worst first. */
export const worst = (kind) => (declared.verdicts[kind] ?? NONE).terms.map(({ word }) => word).reverse();

/** Return a verdict's severity; a missing verdict counts as unknown. */
export function severity(kind, word) {
  const { unassessed, terms } = declared.verdicts[kind] ?? NONE;
  const rank = terms.findIndex((term) => term.word === (word ?? unassessed));
  return rank < 0 ? terms.length : rank;
}

/** Return the CSS class, sign and meaning of a verdict; a word of a newer service gets the class of unknown ones. */
export function styleOf(kind, word) {
  const { colour, sign, meaning } = (declared.verdicts[kind] ?? NONE).terms.find((term) => term.word === word) ?? {};
  return [CLASSES[colour] ?? "unsure", sign ?? "?", meaning ?? word];
}

/** Describe a verdict: its sign and its word, in its colour. */
export function verdict(kind, word) {
  if (!known(word)) return h("span", { class: "quiet" }, UNKNOWN);
  const [style, sign] = styleOf(kind, word);
  return h("span", { class: `${style} together` }, h("span", { class: "sign", "aria-hidden": "true" }, sign), ` ${word}`);
}
