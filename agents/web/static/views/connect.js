// A Connect group: contradictions, delayed work, and workers × connectors and tasks.

import { toGroup } from "../shell/address.js";
import { styleOf } from "../shell/declared.js";
import { h } from "../shell/dom.js";
import { UNKNOWN, ago, count, countdown, duration, known, naturally, plural } from "../shell/format.js";
import { word } from "../shell/glossary.js";
import { table } from "../shell/table.js";

const CONTRADICTIONS_SHOWN = 30;
const UNASSIGNED_SHOWN = 30;
const CONNECTORS_SHOWN = 40;
const DELAYED = {
  departed: "a worker left, and its work waits for it",
  waiting: "work waits for a worker that left",
  back_off: "the leader waits before it revokes work again",
};
const OUTCOMES = {
  away: ["unsure", "is away"], in_time: ["ok", "came back in time"],
  late: ["unsure", "came back late"], gone: ["bad", "is gone"],
};
/** The class of a cell for each status. */
const STATES = {
  RUNNING: "active", PAUSED: "standby", STOPPED: "standby", RESTARTING: "warmup", UNASSIGNED: "warmup", FAILED: "cold",
};

/** The meaning of each class, for the legend. */
const LOOKS = {
  active: "running", standby: "paused or stopped", warmup: "not running yet", cold: "failed",
  none: "no worker is assigned it, or its worker has reported no status",
};

/** Describe a group; `linked`: with a link to its page. */
export function connect(group, nowMs, linked = false) {
  const key = `connect:${group.group}`;
  const wrong = group.contradictions.filter((each) => !each.waits).length;
  const [kind, sign] = styleOf("decisions", group.result);
  const href = linked && toGroup(group.group);
  return h("section", { key, class: "app panel connect", "aria-label": `Connect group ${group.group}` },
    h("div", { class: "tools" },
      h("h3", null, linked ? (href ? h("a", { href }, h("bdi", null, group.group)) : h("bdi", null, group.group)) : "Connect group",
        h("span", { class: "quiet" }, ` Connect, ${plural(group.workers.length, "worker")}, ${
          plural(group.connectors.length, "connector")}, generation ${count(group.generation)}`)),
      h("span", { class: "chips" },
        wrong > 0 && h("span", { class: "chip bad" }, plural(wrong, "contradiction")),
        group.storm && h("span", { class: "chip bad" }, "storm"),
        group.unassigned.length > 0 && h("span", { class: "chip unsure" }, `${count(group.unassigned.length)} unassigned`),
        known(group.next_rebalance_ms) && h("span", { class: "chip", title: "the next rebalance" },
          `rebalance ${countdown(group.next_rebalance_ms, nowMs)}`),
        h("span", { class: `chip ${kind}` }, `${sign} ${group.result}`))),
    contradictions(group, nowMs),
    h("dl", { class: "facts" }, facts(group, nowMs)),
    unassigned(group, nowMs),
    matrix(group),
    connectors(group, nowMs),
    history(group, nowMs));
}

/** Describe every Connect group. */
export function connects(state, nowMs) {
  const all = state.connect ?? [];
  return all.length ? all.map((each) => connect(each, nowMs, true)) : h("section", { key: "none", class: "panel" },
    h("h2", null, "Connect"), h("p", { class: "quiet" }, state.ready ? "No Connect worker has joined a group yet." : "Not read yet."));
}

function contradictions(group, nowMs) {
  if (!group.contradictions.length) return null;
  const shown = group.contradictions.slice(0, CONTRADICTIONS_SHOWN);
  return h("section", { key: "contradictions" },
    h("h4", null, word("contradiction", "Contradictions")),
    h("ul", { class: "contradictions" }, shown.map((each) => {
      const [kind, sign, what] = styleOf("contradictions", each.contradiction);
      return h("li", { key: `${each.contradiction} ${each.connector} ${each.task}`, class: "movement" },
        h("span", { class: `${each.waits ? "unsure" : kind} together` },
          h("span", { class: "sign", "aria-hidden": "true" }, sign), ` ${what} `),
        h("span", { class: "fixed name" }, each.name),
        each.worker && h("span", { class: "fixed quiet" }, ` ${each.worker}`),
        known(each.since_ms) && h("span", { class: "quiet" }, `, for ${duration((nowMs - each.since_ms) / 1000)}`),
        h("span", { class: "because" }, because(each, what)));
    })),
    group.contradictions.length > shown.length
      && h("p", { class: "quiet" }, `${count(group.contradictions.length - shown.length)} more`));
}

/** Return the reason of a contradiction, without the word before it. */
function because({ why, waits }, what) {
  const said = why.startsWith(`${what}: `) ? why.slice(what.length + 2) : why;
  return waits ? `${said}; this may end with the delay` : said;
}

function facts(group, nowMs) {
  const [kind, sign, meaning] = styleOf("decisions", group.result);
  const said = [[word(group.result, "The leader decided"), h("b", { class: kind }, `${sign} ${meaning}`),
    group.why && h("span", { class: "why" }, group.why)]];
  if (known(group.empty_since_ms)) said.push(["Workers", h("b", { class: "bad" }, `none for ${duration((nowMs - group.empty_since_ms) / 1000)}`)]);
  if (known(group.next_rebalance_ms)) {
    said.push([word("rebalance", "Next rebalance"), h("b", null, countdown(group.next_rebalance_ms, nowMs)),
      group.delayed && h("span", { class: "why" }, DELAYED[group.delayed] ?? group.delayed),
      ...Object.entries(group.next_revokes ?? {}).map(([worker, names]) =>
        h("span", { key: worker, class: "why" }, `revokes from ${worker}: ${names.join(" ")}`))]);
  }
  const after = group.imbalance_after;
  said.push(["Assigned", uneven(group.imbalance),
    after && uneven(after) !== uneven(group.imbalance)
      && h("span", { class: "why" }, `then ${uneven(after)}`),
    known(group.uneven_since_ms) && h("span", { class: "why bad" }, `for ${duration((nowMs - group.uneven_since_ms) / 1000)}, and no rebalance is due`)]);
  if (group.storm) said.push(["Rebalances again and again", h("span", { class: "bad" }, group.storm.why)]);
  if (group.absences.length) {
    said.push(["Workers that left", group.absences.map((each) => {
      const [colour, what] = OUTCOMES[each.outcome] ?? ["unsure", each.outcome];
      return h("span", { key: `${each.worker}${each.left_ms}`, class: "why" }, `${each.worker} left ${ago(each.left_ms, nowMs)} and `,
        h("span", { class: colour }, what));
    })]);
  }
  said.push(["Topics", group.topics ? Object.values(group.topics).filter(Boolean).map((name) => h("span", { key: name, class: "fixed cost" }, name))
    : h("span", { class: "unsure" }, `not known: ${group.topics_unknown}`),
  group.shared_with && h("span", { class: "why bad" }, `shared with ${group.shared_with.join(", ")}: caughtup cannot say which group a status belongs to`),
  (group.held_back ?? []).map((sentence) => h("span", { key: sentence, class: "why bad" }, sentence))]);
  return said.map(([term, ...says], at) => h("div", { key: at }, h("dt", null, term), h("dd", null, says)));
}

const uneven = (each) => (each && (each.connectors > 1 || each.tasks > 1)
  ? `unevenly, by ${plural(each.connectors, "connector")} and ${plural(each.tasks, "task")}` : "evenly");

function unassigned(group, nowMs) {
  if (!group.unassigned.length) return null;
  const shown = group.unassigned.slice(0, UNASSIGNED_SHOWN);
  return h("section", { key: "unassigned", class: "scroll" },
    h("h4", null, word("unassigned", "Unassigned")),
    table("unassigned", shown, { kind: "unassigned", key: (each) => each.name, nowMs }),
    group.unassigned.length > shown.length
      && h("p", { class: "quiet" }, `${count(group.unassigned.length - shown.length)} more`));
}

/** Describe a table of workers × connectors: in each cell the worker's tasks of the connector. */
function matrix(group) {
  const names = [...new Set(group.items.map((each) => each.connector))].sort(naturally);
  const shown = names.slice(0, CONNECTORS_SHOWN);
  const cells = Map.groupBy(group.items.flatMap((item) =>
    (item.workers.length ? item.workers : [""]).map((worker) => ({ worker, item }))),
  ({ worker, item }) => JSON.stringify([worker, item.connector]));
  const workers = group.workers.map((each) => [each.worker, each.leader]);
  if (group.unassigned.length) workers.push(["", false]);
  return h("section", { key: "matrix", class: "scroll" },
    h("h4", null, "Workers and their work"),
    legend(group),
    h("table", { class: "rows workers" },
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Worker"),
        shown.map((name) => h("th", { key: name, scope: "col", title: name }, name)))),
      h("tbody", null, workers.map(([worker, leader]) => h("tr", { key: worker },
        h("th", { scope: "row", class: worker ? "fixed" : "unsure" }, worker || "no worker",
          leader && h("span", { class: "leader", title: "leads the group: it decides" }, "leader")),
        shown.map((name) => h("td", { key: name }, (cells.get(JSON.stringify([worker, name])) ?? []).map(({ item }) =>
          piece(item, worker)))))))),
    names.length > shown.length && h("p", { class: "quiet" }, `${plural(names.length - shown.length, "connector")} more`));
}

/** Describe the legend, with the colours that occur. */
function legend(group) {
  const there = new Set(group.items.flatMap((item) => (item.workers.length ? item.workers : [""]).map((worker) => cellClass(item, worker))));
  const states = Object.entries(LOOKS).filter(([kind]) => there.has(kind));
  return h("ul", { class: "legend", "aria-label": "Legend" },
    h("li", { key: "pieces" }, "C is the connector, and a number is its task"),
    states.map(([kind, says]) => h("li", { key: kind },
      h("span", { class: `swatch kind ${kind}`, "aria-hidden": "true" }, "\u00a0"), says)));
}

/** The class of a piece's cell: by what its worker said of it. */
const cellClass = (item, worker) => (worker && item.said_by === worker ? STATES[item.state] : null) ?? "none";

/** Describe a connector or a task, with its status. */
function piece(item, worker) {
  const said = known(item.state)
    ? `${item.state} on ${item.said_by}, generation ${count(item.said_generation)}${item.error ? `: ${item.error}` : ""}`
    : "no worker has reported a status";
  return h("span", { key: item.name, class: `kind ${cellClass(item, worker)}`,
    title: `${item.name}: ${said}`, "aria-label": `${item.name}: ${said}` }, known(item.task) ? item.task : "C");
}

function connectors(group, nowMs) {
  const all = group.connectors.slice(0, CONNECTORS_SHOWN);
  return all.length > 0 && h("section", { key: "connectors", class: "scroll" },
    h("h4", null, "Connectors"),
    table("connectors", all, { kind: "connectors", key: (each) => each.name, nowMs }));
}

/** The renderers of the cells of connectors and of unassigned work. */
export const CONNECT_CELLS = {
  connector: (each) => ({ class: "name", title: each.connector_class, says: each.name }),
  tasks: (each) => ({ says: [count(each.tasks),
    known(each.tasks_max) && each.tasks_max !== each.tasks && h("span", { class: "quiet" }, ` of ${count(each.tasks_max)}`)] }),
  "connector state": (each) => ({ class: each.state === "FAILED" ? "bad" : "", says: [each.state ?? UNKNOWN,
    each.target_state && each.target_state !== "STARTED" && h("span", { class: "quiet" }, ` (${each.target_state})`)] }),
  progress: (each, column, { nowMs }) => ({ says: progress(each, nowMs) }),
  worker: (each, { of: [name] }) => ({ class: "fixed", says: each[name] ?? UNKNOWN }),
};

/** Return a sink's lag, or the age of a source's offsets. */
function progress(each, nowMs) {
  if (each.type === "sink") return `${plural(each.lag, "offset")} behind`;
  return known(each.offsets_at_ms) ? ["offsets stored ", h("span", { class: "together" }, ago(each.offsets_at_ms, nowMs))] : "no offsets stored";
}

function history(group, nowMs) {
  return group.history.length > 0 && h("section", { key: "history" },
    h("h4", null, "Generations"),
    h("ol", { class: "history" }, group.history.map((each) => {
      const [kind, sign] = styleOf("decisions", each.result);
      return h("li", { key: `${each.generation} ${each.at_ms}` },
        h("b", null, each.generation), h("span", { class: kind, title: each.why || each.result }, ` ${sign} `),
        h("span", { class: "unseen" }, each.result),
        `${count(each.assigned)} assigned, ${count(each.revoked)} revoked`,
        each.delay_ms > 0 && `, delay ${duration(each.delay_ms / 1000)}`,
        ", ", h("span", { class: "quiet together" }, ago(each.at_ms, nowMs)));
    })));
}
