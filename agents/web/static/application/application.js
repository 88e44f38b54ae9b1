// One Streams application: its matrix, decisions and movements.

import { styleOf } from "../shell/declared.js";
import { h, memo } from "../shell/dom.js";
import { ago, count, known, plural } from "../shell/format.js";
import { word } from "../shell/glossary.js";
import { adding } from "./adding.js";
import { ROLES, isChanging, isSoft } from "./copies.js";
import { configs, facts, next } from "./facts.js";
import { idle } from "./idle.js";
import { matrix } from "./matrix.js";
import { movements } from "./movements.js";

const FILTERS = { "": "all tasks", changing: "moving or behind" };
/** How often a matrix is redrawn for figures that became old. */
const AGEING_MS = 10_000;

/** Describe an application. `ui`: the user's choices. */
export function application(app, ui, nowMs) {
  return h("section", { key: "application", class: "app panel", "aria-labelledby": "application" },
    h("div", { class: "tools" },
      h("h3", { id: "application" }, "Streams application",
        h("span", { class: "quiet" }, ` ${plural(app.clients.length, "client")}, ${
          plural(app.tasks.length, "task")}, ${app.by_coordinator
          ? "assigned by the group coordinator, epoch" : "generation"} ${count(app.generation)}`)),
      h("span", { class: "chips" }, warming(app), probingChip(app.probing, nowMs), exactChip(app.exact))),
    undecided(app),
    h("dl", { class: "facts" }, facts(app, nowMs), idle(app, nowMs), adding(app, ui), configs(app)),
    tasks(app, ui, nowMs),
    movements(app, ui, nowMs),
    history(app, nowMs));
}

function tasks(app, ui, nowMs) {
  const filter = ui.query.get("tasks") ?? "";
  const changing = app.tasks.filter((task) => isChanging(app, task));
  const shown = filter === "changing" ? changing : app.tasks;
  const inputs = JSON.stringify([app, ui.width, filter, ui.focus, ui.query.get("zoom"), Math.floor(nowMs / AGEING_MS)]);
  return [
    h("div", { class: "tools" }, legend(app, nowMs),
      h("span", { class: "filters", role: "group", "aria-label": "Tasks shown" },
        Object.entries(FILTERS).map(([name, label]) => h("button", { type: "button", "data-choose": "tasks",
          "data-value": name, "aria-pressed": String(name === filter) },
        name === "" ? label : `${label} (${count(changing.length)})`)))),
    shown.length && app.clients.length
      ? memo("matrix", inputs, () => matrix(app, shown, ui, nowMs))
      : h("p", { class: "quiet" }, app.tasks.length ? "No task moves, and none is behind." : "No tasks yet."),
  ];
}

/** Describe that the newest generation waits for end offsets, and the one before is shown. */
function undecided(app) {
  if (app.by_coordinator) return null;
  const decided = Math.max(...(app.history ?? []).map((each) => each.generation));
  if (decided >= app.generation) return null;
  return h("p", { key: "undecided", class: "notice" }, `The service waits for end offsets to decide generation ${count(app.generation)}. ${
    Number.isFinite(decided) ? `The page shows generation ${count(decided)}.` : "No generation is decided yet."}`);
}


function warming(app) {
  const roles = app.tasks.flatMap((task) => task.copies.map((copy) => copy.role));
  return [["warmup", "warming up"], ["restoring", "restoring"]].map(([role, label]) => {
    const number = roles.filter((each) => each === role).length;
    return number > 0 && h("span", { key: role, class: `chip ${role}` }, `${count(number)} ${label}`);
  });
}

function probingChip(probing, nowMs) {
  const due = next(probing, nowMs);
  return due && h("span", { class: due.late ? "chip bad" : "chip", title: `the next ${due.what} rebalance` },
    `${due.what} ${due.when}`);
}

function exactChip(exact) {
  const [kind, sign] = styleOf("decisions", exact?.result);
  return known(exact?.result) && h("span", { class: `chip ${kind}` }, `${sign} ${exact.result}`);
}

function legend(app, nowMs) {
  const present = new Set(app.tasks.flatMap((task) => task.copies.map((copy) => copy.role)));
  return h("ul", { class: "legend", "aria-label": "Legend" },
    Object.entries(ROLES).filter(([role]) => present.has(role)).map(([role, { letter, name }]) =>
      h("li", { key: role }, h("span", { class: `swatch ${role}`, "aria-hidden": "true" }, letter),
        role === "none" ? name : word(name))),
    app.recommendation?.movements?.some((move) => move.from && move.from !== move.to)
      && h("li", { key: "moves" }, h("span", { class: "swatch from", "aria-hidden": "true" }, "−"), "leaves",
        h("span", { class: "swatch to", "aria-hidden": "true" }, "+"), "arrives"),
    h("li", { key: "bar" }, h("span", { class: "swatch bar", "aria-hidden": "true" }, h("s", null)),
      known(app.acceptable_recovery_lag)
      ? `lag in offsets; the tick is acceptable.recovery.lag, ${count(app.acceptable_recovery_lag)}` : "lag in offsets"),
    app.tasks.some((task) => task.copies.some((copy) => isSoft(copy, nowMs)))
      && h("li", { key: "soft" }, h("span", { class: "swatch standby soft", "aria-hidden": "true" }, "\u00a0"), "estimated or old"));
}

function history(app, nowMs) {
  if (!app.history?.length) return null;
  const newest = [...app.history].sort((a, b) => b.generation - a.generation);
  return h("section", { key: "history" },
    h("h4", null, word("generation", "Generations")),
    h("ol", { class: "history" }, newest.map((each) => {
      const [kind, sign] = styleOf("decisions", each.result);
      return h("li", { key: each.generation },
        h("b", null, each.generation), h("span", { class: kind, title: each.result }, ` ${sign} `),
        h("span", { class: "unseen" }, each.result), `${plural(each.movements, "movement")} `,
        h("span", { class: "quiet" }, ago(each.at_ms, nowMs)));
    })));
}
