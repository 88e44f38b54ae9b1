// One Streams application: what it looks like, what was decided, and what moves.

import { h, memo } from "./dom.js";
import { ago, count, countdown, duration, known, naturally, plural } from "./format.js";
import { ROLES, clientNames, matrix, route } from "./matrix.js";

const MOVEMENTS_SHOWN = 40;
const TASKS_NAMED = 12;
const KINDS = {
  warmup: "warm-up", cold: "cold hand-over", waiting: "waiting its turn", swap: "swap",
  active: "caught up: hand over", standby: "standby", stateless: "stateless",
};
const VERDICTS = {
  match: ["ok", "✓", "as Kafka's own assignor decides"],
  mismatch: ["bad", "✗", "other than Kafka's own assignor decides"],
  undetermined: ["unsure", "?", "can't be told"],
};
const FILTERS = { all: "all tasks", changing: "moving or behind" };

/** Describe an application. `ui`: what the person looking at it opened, filtered and focused. */
export function application(app, ui, nowMs) {
  const key = `app:${app.group}`;
  const open = ui.open.get(key) ?? ui.openByDefault;
  return h("details", { key, class: "app panel", "data-open": key, open },
    h("summary", null,
      h("h3", null, app.group),
      h("span", { class: "quiet" }, `${plural(app.clients.length, "client")}, ${
        plural(app.tasks.length, "task")}, generation ${count(app.generation)}`),
      h("span", { class: "chips" }, warming(app), probingChip(app.probing, nowMs), exactChip(app.exact))),
    open && body(app, ui, nowMs));
}

function body(app, ui, nowMs) {
  const filter = ui.filters.get(app.group) ?? "all";
  const tasks = filter === "all" ? app.tasks : app.tasks.filter((task) => isChanging(app, task));
  const focus = ui.focus.get(app.group);
  const inputs = JSON.stringify([app, ui.width, filter, focus]);
  return [
    undecided(app),
    h("dl", { class: "facts" }, facts(app, nowMs)),
    h("div", { class: "tools" }, legend(app),
      h("span", { class: "filters", role: "group", "aria-label": "Tasks shown" },
        Object.entries(FILTERS).map(([name, label]) => h("button", { type: "button",
          "data-filter": name, "data-group": app.group, "aria-pressed": String(name === filter) },
        name === "all" ? label : `${label} (${app.tasks.filter((t) => isChanging(app, t)).length})`)))),
    tasks.length
      ? memo(`matrix:${app.group}`, inputs, () =>
        h("div", { class: "matrix", "data-matrix": app.group }, matrix(app, { width: ui.width, tasks, focus })))
      : h("p", { class: "quiet" }, app.tasks.length ? "No task moves or is behind." : "No tasks yet."),
    movements(app, ui),
    history(app, nowMs),
  ];
}

/** A generation is decided once end offsets were listed after it: until then the last one is shown. */
function undecided(app) {
  const decided = Math.max(...(app.history ?? []).map((each) => each.generation));
  if (decided >= app.generation) return null;
  return h("p", { key: "undecided", class: "notice" }, `Generation ${count(app.generation)} waits for end offsets. ${
    Number.isFinite(decided) ? `What follows is generation ${count(decided)}.` : "Nothing is decided yet."}`);
}

function isChanging(app, task) {
  const acceptable = app.acceptable_recovery_lag ?? 0;
  return task.copies.some((copy) => copy.role === "warmup" || copy.role === "restoring"
      || (copy.role === "standby" && known(copy.lag) && copy.lag > acceptable))
    || (app.recommendation?.movements ?? []).some((move) => move.task === task.task);
}

function warming(app) {
  const roles = app.tasks.flatMap((task) => task.copies.map((copy) => copy.role));
  const chips = [["warmup", "warming up"], ["restoring", "restoring"]].map(([role, label]) => {
    const number = roles.filter((each) => each === role).length;
    return number > 0 && h("span", { class: `chip ${role}` }, `${number} ${label}`);
  });
  return chips;
}

/** Say when the next rebalance is due, and whether it is late; null if none is asked for. */
function next(probing, nowMs) {
  if (!probing?.scheduled || !known(probing.due_ms)) return null;
  // A moment of 0 asks for a follow-up rebalance: a task changes hands in two steps.
  if (probing.due_ms === 0) return { what: "follow-up", when: "at once", late: false };
  return { what: "probing", when: countdown(probing.due_ms, nowMs), late: probing.due_ms < nowMs - 500 };
}

function probingChip(probing, nowMs) {
  const due = next(probing, nowMs);
  return due && h("span", { class: due.late ? "chip bad" : "chip", title: `the next ${due.what} rebalance` },
    `${due.what} ${due.when}`);
}

function exactChip(exact) {
  const [kind, sign] = VERDICTS[exact?.result] ?? [];
  return kind && h("span", { class: `chip ${kind}` }, `${sign} ${exact.result}`);
}

function facts(app, nowMs) {
  const { probing, exact, recommendation } = app;
  const said = [];
  const due = next(probing, nowMs);
  if (due) {
    said.push([`Next ${due.what} rebalance`, h("b", { class: due.late ? "bad" : null }, due.when),
      probing.carried_by && `, carried by ${probing.carried_by}`,
      probing.worthwhile_now && h("b", { class: "ok" }, ", worth it now"),
      probing.why && h("span", { class: "why" }, probing.why)]);
  } else if (probing) {
    said.push(["Next probing rebalance", "none scheduled"]);
  }
  const { spark, own, silent_since_ms: silent } = app.rates ?? {};
  if (spark || own || known(silent)) {
    said.push(["Rates of copies", [spark && `${count(spark)} measured by Spark`, own && `${count(own)} by their own positions`]
      .filter(Boolean).join(", ") || "none known",
      known(silent) && h("span", { class: "why" }, `nothing from Spark any more: the last came ${ago(silent, nowMs)}`)]);
  }
  if (exact) {
    const [kind, sign, meaning] = VERDICTS[exact.result] ?? ["unsure", "?", exact.result];
    said.push(["The leader decided", h("b", { class: kind }, `${sign} ${meaning}`),
      exact.assignor && h("span", { class: "quiet" }, ` (${exact.assignor})`),
      exact.why && h("span", { class: "why" }, exact.why)]);
    if (exact.told) said.push(["The leader says", h("span", { class: "why" }, exact.told)]);
  }
  if (app.configs?.length) {
    said.push(["Configs", app.configs.map((one) => h("span", { key: one.name, class: "cost" },
      h("b", null, one.name), ` ${one.values}`,
      h("span", { class: "quiet", title: one.would_tell && `would tell more: ${one.would_tell}` }, ` ${one.known}`)))]);
  }
  if (recommendation) {
    const wanted = recommendation.probing_rebalance;
    said.push(["Recommended", recommendation.movements.length
      ? plural(recommendation.movements.length, "movement") : "nothing to move",
    wanted?.reason && h("span", { class: "why" }, wanted.reason)]);
    const costs = [["caughtup", recommendation.cost], ["Kafka's assignor", recommendation.kafka_cost]];
    if (costs.every(([, cost]) => known(cost?.seconds)) && recommendation.movements.length) {
      said.push(["Until balanced", costs.map(([who, cost]) => h("span", { key: who, class: "cost" },
        h("b", null, `${plural(cost.copies, "copy")}`.replace("copys", "copies")), ` and ${
          plural(cost.rebalances, "probing rebalance")}, ${duration(cost.seconds)}`,
        h("span", { class: "quiet" }, ` by ${who}${cost.estimated ? ", estimated" : ""}`)))]);
    }
    const inferred = recommendation.inputs?.inferred ?? [];
    if (inferred.length) said.push(["Inferred, not known", inferred.join("; ")]);
    const contradicted = recommendation.inputs?.contradicted ?? [];
    if (contradicted.length) said.push(["Wrong in the settings", contradicted.join("; ")]);
  }
  return said.map(([term, ...says]) => h("div", { key: term }, h("dt", null, term), h("dd", null, says)));
}

function legend(app) {
  const present = new Set(app.tasks.flatMap((task) => task.copies.map((copy) => copy.role)));
  return h("ul", { class: "legend", "aria-label": "Legend" },
    Object.entries(ROLES).filter(([role]) => present.has(role)).map(([role, { letter, name }]) =>
      h("li", { key: role }, h("span", { class: `swatch ${role}`, "aria-hidden": "true" }, letter), name)),
    app.recommendation?.movements?.some((move) => move.from && move.from !== move.to)
      && h("li", { key: "moves" }, h("span", { class: "swatch from", "aria-hidden": "true" }, "−"), "leaves",
        h("span", { class: "swatch to", "aria-hidden": "true" }, "+"), "arrives"),
    h("li", { key: "bar" }, h("span", { class: "swatch bar", "aria-hidden": "true" }, h("s", null)),
      known(app.acceptable_recovery_lag)
      ? `lag; the tick is the acceptable ${count(app.acceptable_recovery_lag)}` : "lag"));
}

function movements(app, ui) {
  const all = app.recommendation?.movements ?? [];
  if (!all.length) return null;
  const rows = together(all);
  const everything = ui.everything.has(app.group);
  const shown = everything ? rows : rows.slice(0, MOVEMENTS_SHOWN);
  const names = clientNames(app);
  return h("section", { key: "movements", class: "scroll" },
    h("h4", null, "Recommended movements"),
    h("table", { class: "rows moves" },
      h("thead", null, h("tr", null, ["Tasks", "Movement", "From → to"].map((t) => h("th", { scope: "col" }, t)),
        h("th", { scope: "col", class: "number" }, "Lag"), h("th", { scope: "col" }, "Reason"))),
      h("tbody", null, shown.map(({ key, move, tasks }) => h("tr", { key },
        h("td", { class: `fixed tasks${tasks.length > 1 ? " several" : ""}`, title: tasks.join(", ") }, tasks.slice(0, TASKS_NAMED).join(" "),
          tasks.length > TASKS_NAMED && ` and ${count(tasks.length - TASKS_NAMED)} more`),
        h("td", null, h("span", { class: `kind ${move.kind}` }, KINDS[move.kind] ?? move.kind)),
        h("td", { class: "fixed route" }, route(move, names)),
        h("td", { class: "number" }, count(move.lag)),
        h("td", { class: "why" }, move.reason))))),
    rows.length > shown.length && h("button", { type: "button", "data-everything": app.group },
      `Show all ${count(all.length)}`));
}

/** Put movements that differ in nothing but their task into one row; warm-ups come first. */
function together(movements) {
  const rows = new Map();
  for (const move of movements) {
    const key = JSON.stringify([move.kind, move.from, move.to, move.lag, move.reason]);
    if (rows.has(key)) rows.get(key).tasks.push(move.task);
    else rows.set(key, { key, move, tasks: [move.task] });
  }
  for (const row of rows.values()) row.tasks.sort(naturally);
  const order = Object.keys(KINDS);
  const rank = ({ move }) => (order.indexOf(move.kind) + order.length + 1) % (order.length + 1);
  return [...rows.values()].sort((a, b) => rank(a) - rank(b) || naturally(a.tasks[0], b.tasks[0]));
}

function history(app, nowMs) {
  if (!app.history?.length) return null;
  const newest = [...app.history].sort((a, b) => b.generation - a.generation);
  return h("section", { key: "history" },
    h("h4", null, "Generations"),
    h("ol", { class: "history" }, newest.map((each) => {
      const [kind, sign] = VERDICTS[each.result] ?? ["unsure", "?"];
      return h("li", { key: each.generation },
        h("b", null, each.generation), h("span", { class: kind, title: each.result }, ` ${sign} `),
        h("span", { class: "unseen" }, each.result), `${plural(each.movements, "movement")} `,
        h("span", { class: "quiet" }, ago(each.at_ms, nowMs)));
    })));
}
