// The last change of members of each Streams application, and its cost, side by side.

import { toGroup } from "../shell/address.js";
import { h } from "../shell/dom.js";
import { ago, count, duration, known, moment, naturally, plural } from "../shell/format.js";
import { word } from "../shell/glossary.js";
import { more, portion, table } from "../shell/table.js";

const SHOWN = 6;
/** Applications that have been at rest for longer are left out. */
const KEPT_MS = 3_600_000;

/** Describe the applications that aren't at rest, or came to rest recently; nothing if there are none. */
export function changes(groups, ui, nowMs) {
  const rows = (groups ?? []).filter(({ application }) => application?.change
    && (!known(application.change.at_rest_ms) || nowMs - application.change.at_rest_ms < KEPT_MS));
  if (!rows.length) return null;
  rows.sort((a, b) => b.application.change.at_ms - a.application.change.at_ms || naturally(a.group, b.group));
  const shown = rows.slice(0, portion(ui.query, "changes", SHOWN));
  const most = Math.max(1, ...shown.map(({ application }) => application.change.copies));
  return h("section", { key: "changes", class: "panel", "aria-labelledby": "changes" },
    h("h2", { id: "changes" }, "Since an instance joined or left"),
    h("div", { class: "scroll" }, table("changes", shown.map(({ group, application }) => ({ group, ...application.change })), {
      kind: "changes", key: (each) => each.group, most, nowMs })),
    more(shown.length, rows.length, "changes", 50));
}

/** The application, as a link to its page, and what changed. */
function changed(each, column, { nowMs }) {
  const href = toGroup(each.group);
  const name = h("bdi", null, each.group);
  return { class: "name", says: [href ? h("a", { href, class: "fixed" }, name) : name,
    h("span", { class: "because quiet", title: moment(each.at_ms) }, `${each.text}, ${ago(each.at_ms, nowMs)}`)] };
}

const waited = ({ waits, waited_seconds: seconds }) =>
  `${duration(seconds)}${waits > 0 ? `, ${waits === 1 ? "once" : `${count(waits)} times`}` : ""}`;

function rest({ at_ms: at, at_rest_ms: end }, nowMs, notYet, kind = "unsure") {
  if (known(end)) return h("b", null, duration((end - at) / 1000));
  return h("span", { class: kind }, `${notYet} ${duration(Math.max(0, nowMs - at) / 1000)}`);
}

/** The renderers of a change's cells. */
export const CHANGE_CELLS = {
  change: changed,
  waited: (each) => ({ says: waited(each) }),
  rest: (each, column, { nowMs }) => ({ class: "rest", says: rest(each, nowMs, "not yet, after") }),
};

/** Describe the change of one application, as a fact. */
export function changeFact(change, nowMs) {
  return [word("rebalance", `Since ${change.text}`), h("b", null, plural(change.copies, "copy", "copies")),
    known(change.at_rest_ms) ? " built, " : " begun, ", plural(change.rebalances, "rebalance"), ", ",
    known(change.at_rest_ms) ? "at rest after " : "", rest(change, nowMs, "not at rest for", "unsure together"),
    change.waits > 0 && h("span", { class: "why" },
      `${duration(change.waited_seconds)} of that waiting for ${plural(change.waits, "rebalance")} that the application had scheduled`)];
}
