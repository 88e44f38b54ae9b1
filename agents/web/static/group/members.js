// Who has what in a group, who decided so, and what another member would change: asked on demand.

import { asking } from "../shell/asked.js";
import { h } from "../shell/dom.js";
import { count, plural } from "../shell/format.js";
import { more, portion, table } from "../shell/table.js";

const MOST = 20;

/** Describe a button, or the members once they were asked for; nothing for a group that has none. */
export function members({ members: all, group_type: type }, name, ui, nowMs) {
  if (!all || !["classic", "consumer", "streams"].includes(type)) return null;
  const path = `api/groups/${encodeURIComponent(name)}/explanation`;
  return asking({ choice: "who", button: "Who has what?", title: "Members", path }, ui, ({ says, members: rows }) => {
    const shown = portion(ui.query, "who_rows", MOST);
    return [
      h("ul", { class: "points" }, (says ?? []).map((sentence, at) => h("li", { key: at }, h("bdi", null, sentence)))),
      h("div", { class: "scroll" }, table("members", rows.slice(0, shown), {
        kind: "members", key: (each) => each.member, nowMs })),
      more(shown, rows.length, "who_rows", MOST),
    ];
  });
}

/** A member's partitions, and how many it has to revoke or awaits. */
function assigned({ assigned: own, revokes, awaits }) {
  const notes = [revokes?.length && `${count(revokes.length)} to revoke`, awaits?.length && `${count(awaits.length)} to come`];
  return { class: "together", title: `${plural(own.length, "partition")}: ${own.slice(0, MOST).map(([topic, number]) => `${topic}-${number}`).join(" ")}`,
    says: [count(own.length), ...notes.filter(Boolean).map((note) => h("span", { class: "quiet" }, ` (${note})`))] };
}

/** The renderer of a member's partitions. */
export const MEMBER_CELLS = { assigned };
