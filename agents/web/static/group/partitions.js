// A group's partitions: verdict, lag, and assigned member.

import { h } from "../shell/dom.js";
import { ago, count, duration, known, written } from "../shell/format.js";
import { more, portion, sorted, table } from "../shell/table.js";

const SHOWN = 20;
/** Unchanged end offsets are published once a minute. */
const OLD_MS = 150_000;

const owner = (each) => each.client_id ?? each.member ?? "";

/** Describe the partitions that match the query, the worst first unless it sorts otherwise. */
export function partitions(state, ui, nowMs) {
  const { query } = ui;
  const all = state.partitions ?? [];
  const find = (query.get("find") ?? "").toLowerCase();
  const found = all.filter((each) => `${each.topic}-${each.partition} ${owner(each)} ${each.host ?? ""} ${each.verdict ?? ""}`
    .toLowerCase().includes(find));
  const sort = query.get("sort") ?? "";
  const rows = sorted("partitions", found, sort);
  const shown = rows.slice(0, portion(query, "rows", SHOWN));
  return h("section", { key: "partitions", class: "panel", "aria-labelledby": "partitions" },
    h("div", { class: "tools" },
      h("h2", { id: "partitions" }, "Partitions", h("span", { class: "quiet" }, ` ${count(all.length + (state.partitions_more ?? 0))}`)),
      all.length > 0 && h("input", { type: "search", "data-search": "find", value: query.get("find") ?? "",
        placeholder: "Find a partition or member", "aria-label": "Find a partition or a member" })),
    shown.length
      ? h("div", { class: "scroll" }, table("partitions", shown, {
        kind: "partitions", key: (each) => `${each.topic}-${each.partition}`, sort, nowMs }))
      : h("p", { class: "quiet" }, all.length ? "No partition matches." : "The group has committed on no partition, and is assigned none."),
    more(shown.length, rows.length, "rows", 100),
    state.partitions_more > 0 && h("p", { class: "quiet" },
      `${count(state.partitions_more)} more, none of them worse than these; caughtup lag GROUP shows all.`));
}

/** The partition, and if its verdict is bad, the reason. */
const name = (each) => ({ class: "name fixed", says: [h("bdi", null, `${each.topic}-${each.partition}`),
  each.verdict !== "ok" && each.why && h("span", { class: "because" }, each.why)] });

/** The lag, with the age of the listed log end if that is old. */
function dated(each, column, { nowMs }) {
  const old = known(each.as_of_ms) && nowMs - each.as_of_ms > OLD_MS;
  return { class: old ? "soft" : "", title: known(each.as_of_ms) ? `the log's end was listed ${ago(each.as_of_ms, nowMs)}` : null,
    says: [count(each.lag), old && h("span", { class: "quiet" }, `, ${duration((nowMs - each.as_of_ms) / 1000)} old`)] };
}

/**
 * The log end. Ends are listed each second, commits are read at once: a commit beyond the end is
 * newer, unless the verdict says that the log was truncated.
 */
function end(each, column, { nowMs }) {
  const says = written("log end", [each.end_offset, each.committed, each.verdict]);
  if (!says.startsWith("≥")) return { says };
  return { class: "soft", says, title: `${count(each.end_offset)} when it was listed${
    known(each.as_of_ms) ? `, ${ago(each.as_of_ms, nowMs)}` : ""}: the commit is newer` };
}

/** The client that reads the partition, with its host. */
const member = (each) => ({ class: "member", says: [
  owner(each) ? h("bdi", { title: each.member ?? null }, owner(each)) : h("span", { class: "unsure" }, "no member"),
  each.host && h("span", { class: "quiet" }, ` ${each.host}`)] });

/** The renderers of a partition's cells. */
export const PARTITION_CELLS = { partition: name, dated, "log end": end, member };
