// Every group: its verdict and reason, its lag, and the lag's recent course.

import { toGroup } from "../shell/address.js";
import { styleOf, worst } from "../shell/declared.js";
import { h } from "../shell/dom.js";
import { ago, count, countdown, known, plural, short } from "../shell/format.js";
import { more, portion, sorted, table } from "../shell/table.js";
import { lasting, status } from "./status.js";

const SHOWN = 30;
const KINDS = { streams: "Kafka Streams", connect: "Connect" };

const isKind = (each, kind) => (kind === "streams" ? each.application : each.connect) !== undefined;

/** Describe the groups that match the query, the worst first unless it sorts otherwise. */
export function groups(state, ui, nowMs) {
  const { query } = ui;
  const all = state.groups ?? [];
  const find = (query.get("find") ?? "").toLowerCase();
  const own = all.filter((each) => each.own);
  const shownOwn = query.get("own") === "1" || find !== "";
  const counted = shownOwn ? all : all.filter((each) => !each.own);
  const wanted = counted
    .filter((each) => each.group.toLowerCase().includes(find))
    .filter((each) => !query.has("kind") || isKind(each, query.get("kind")));
  const found = wanted.filter((each) => !query.has("status") || (each.status ?? "unknown") === query.get("status"));
  const sort = query.get("sort") ?? "status";
  const rows = sorted("groups", found, sort);
  const shown = rows.slice(0, portion(query, "rows", SHOWN));
  const most = Math.max(0, ...shown.map((each) => each.lag ?? 0));
  return h("section", { key: "groups", class: "panel", "aria-labelledby": "groups" },
    h("div", { class: "tools" },
      h("h2", { id: "groups" }, "Groups", h("span", { class: "quiet" }, ` ${count(counted.length + (state.groups_more ?? 0))}`)),
      h("input", { type: "search", "data-search": "find", value: query.get("find") ?? "", placeholder: "Find a group",
        "aria-label": "Find a group" })),
    all.length > 0 && filters(wanted, counted, query, state.groups_more > 0 ? state.statuses : undefined),
    shown.length
      ? h("div", { class: "scroll" }, table("groups", shown, {
        kind: "groups", key: (each) => each.group, about: (each) => about(each, nowMs), sort, most, nowMs }))
      : h("p", { class: "quiet" }, all.length ? "No group matches."
        : state.ready ? "No group has committed yet." : "Not read yet."),
    more(shown.length, rows.length, "rows", 100),
    state.groups_more > 0 && h("p", { class: "quiet" },
      `${count(state.groups_more)} more, none of them worse than these; the search looks through all groups.`),
    own.length > 0 && find === "" && h("p", { class: "quiet" },
      h("button", { type: "button", "data-choose": "own", "data-value": shownOwn ? "" : "1", "aria-pressed": String(shownOwn) },
        `${plural(own.length, "group")} of caughtup's own`)),
    notTold(state.groups_not_told));
}

/** Buttons that filter groups by verdict or kind; `statuses` also counts groups that were left out. */
function filters(wanted, counted, query, statuses) {
  const byStatus = Map.groupBy(wanted, (each) => each.status ?? "unknown");
  const number = (verdict) => count(statuses?.[verdict] ?? byStatus.get(verdict)?.length ?? 0);
  const verdicts = worst("lag").filter((verdict) => byStatus.has(verdict) || query.get("status") === verdict);
  const kinds = Object.keys(KINDS).filter((kind) => counted.some((each) => isKind(each, kind)) || query.get("kind") === kind);
  return h("div", { class: "filters", role: "group", "aria-label": "Groups shown" },
    verdicts.map((verdict) => filter("status", verdict, query, [status(verdict), ` ${number(verdict)}`])),
    kinds.map((kind) => filter("kind", kind, query, [
      KINDS[kind], h("span", { class: "quiet" }, ` ${count(counted.filter((each) => isKind(each, kind)).length)}`)])));
}

function filter(choice, value, query, said) {
  const pressed = query.get(choice) === value;
  return h("button", { key: `${choice} ${value}`, type: "button", "data-choose": choice, "data-value": pressed ? "" : value,
    "aria-pressed": String(pressed) }, said);
}

/** Describe how many groups are left out, and why; nothing if none are. */
function notTold(counts) {
  const said = [
    counts?.ignored && `${plural(counts.ignored, "group")} ignored by the settings`,
    counts?.folded && `${count(counts.folded)} of caughtup's own and of Spark's drivers hidden`,
    counts?.limited && `${count(counts.limited)} with metrics by topic or by group only`,
  ].filter(Boolean);
  return said.length > 0 && h("p", { class: "quiet" }, `${said.join(", ")}.`);
}

/** The name of a group, as a link to its page. */
export function groupName({ group }) {
  const href = toGroup(group);
  const name = h("bdi", null, group);
  return { class: "name fixed", says: href ? h("a", { href }, name) : name };
}

/** Describe what stands below a group: its kind and, if its verdict is bad, the reason. */
function about(each, nowMs) {
  const why = each.status !== "ok" && each.why;
  return [
    why && h("span", { class: "why-so" }, lasting(each, nowMs), known(each.since_ms) && ": ", why), " ", h("span", { class: "quiet" }, kind(each, nowMs)),
    each.application && streams(each.application, nowMs), each.connect && connect(each.connect),
  ];
}

/**
 * Return a group's kind, size and generation (classic, 2 members, 12 partitions, generation 4), for a
 * Spark query its last committed batch (spark, 12 partitions, batch 41, 8 s ago).
 */
export const kind = (each, nowMs) => [
  each.group_type,
  known(each.members) && plural(each.members, "member"),
  known(each.partitions) && plural(each.partitions, "partition"),
  known(each.generation) && `generation ${each.generation}`,
  known(each.batch) && `batch ${each.batch}`,
  known(each.batch_ms) && ago(each.batch_ms, nowMs),
].filter(Boolean).join(", ");

function streams({ clients, tasks, copies, result, probing_due_ms: due, movements }, nowMs) {
  const chips = [["warmup", "warming up"], ["restoring", "restoring"]].map(([role, said]) => copies?.[role] > 0
    && h("span", { key: role, class: `chip ${role}` }, `${short(copies[role])} ${said}`));
  return h("span", { class: "parts" }, h("b", null, "Streams"),
    ` ${plural(tasks, "task")}${known(clients) ? ` on ${plural(clients, "client")}` : ""}`, chips,
    movements > 0 && h("span", null, `${plural(movements, "movement")} recommended`),
    known(due) && due > 0 && h("span", null, `probing ${countdown(due, nowMs)}`), verdict(result));
}

function connect({ workers, connectors, unassigned, contradictions, result }) {
  return h("span", { class: "parts" }, h("b", null, "Connect"),
    ` ${known(connectors) ? `${plural(connectors, "connector")} on ` : ""}${plural(workers, "worker")}`,
    contradictions > 0 && h("span", { class: "chip bad" }, plural(contradictions, "contradiction")),
    unassigned > 0 && h("span", { class: "chip unsure" }, `${count(unassigned)} unassigned`), verdict(result));
}

function verdict(result) {
  const [style, sign] = styleOf("decisions", result);
  return known(result) && h("span", { class: style }, `${sign} ${result}`);
}
