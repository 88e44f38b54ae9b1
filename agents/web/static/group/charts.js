// Charts of the last hours or days, with events as marks.

import { h } from "../shell/dom.js";
import { ago, bytes, count, known, moment, short } from "../shell/format.js";

const KINDS = { rebalance: "↻", verdict: "◆", movement: "→", reassignment: "⇄", connect: "⌁", service: "●" };
const MARKS_SAID = 6;
/** An older last figure isn't current: the history's samples are minutes or hours apart. */
const OLD_MS = 150_000;

let library = null; // uPlot, loaded with the first chart
const plots = new Map();

/** The ranges of charts: days and label; without days, what the service keeps in memory. */
const RANGES = [["", "6 hours"], ["1", "a day"], ["7", "a week"], ["30", "30 days"]];

/** Describe the buttons that choose the range. */
const ranges = (chosen) => h("div", { class: "filters", role: "group", "aria-label": "How far back" },
  RANGES.map(([days, said]) => h("button", { key: days, type: "button", "data-choose": "days", "data-value": days,
    "aria-pressed": String(days === chosen) }, said)));

/**
 * Describe charts of `ui.recent`; each is filled after it is drawn. `history`: the service has more
 * than the last hours.
 */
export function charts(wanted, ui, { history = false } = {}) {
  const { recent } = ui;
  const there = recent?.at_ms?.length
    ? wanted.filter((chart) => chart.series.some(([name]) => recent.series?.[name]?.some(known))) : [];
  const chosen = RANGES.find(([days]) => days === ui.query.get("days")) ?? RANGES[0];
  if (!there.length) {
    return history && h("section", { key: "charts", class: "panel", "aria-label": "Over time" }, ranges(chosen[0]), nothing(recent));
  }
  ui.after.push(() => fill(there, recent));
  const marks = (recent.marks ?? []).filter((mark) => mark.at_ms >= recent.at_ms[0]);
  return h("section", { key: "charts", class: "panel", "aria-label": "Over time" },
    history && ranges(chosen[0]),
    h("div", { class: "charts" }, there.map((chart) => h("figure", { key: chart.id },
      h("figcaption", null, h("b", null, chart.title), said(chart, recent).map(([now, most], at) =>
        h("span", { key: at, class: "quiet" }, h("span", { class: `line line-${at}`, "aria-hidden": "true" }), now,
          most && ", ", most && h("span", { class: "together" }, most)))),
      h("div", { class: "chart", "data-chart": chart.id, "data-tips": true, opaque: true, role: "img",
        "aria-label": `${chart.title}: ${said(chart, recent).map((line) => line.filter(Boolean).join(", ")).join("; ")}` })))),
    marks.length > 0 && h("details", { class: "marks" },
      h("summary", null, `${count(marks.length)} marked: `,
        Object.entries(KINDS).filter(([kind]) => marks.some((mark) => mark.kind === kind)).map(([kind, sign]) =>
          h("span", { key: kind, class: "quiet" }, ` ${sign} ${kind === "connect" ? "Connect" : kind}`))),
      h("ol", null, marks.slice(-MARKS_SAID * 5).reverse().map((mark) => h("li", { key: `${mark.at_ms} ${mark.text}` },
        h("span", { class: "quiet" }, `${moment(mark.at_ms)} `), KINDS[mark.kind] ?? "·", ` ${mark.text}`,
        mark.why && h("span", { class: "quiet" }, `: ${mark.why}`))))));
}

function nothing(recent) {
  if (recent?.problem) return h("p", { class: "unsure" }, `The history can't be read: ${recent.problem}`);
  return h("p", { class: "quiet" }, recent ? "Nothing is known of this time." : "Asking the service.");
}

/** Return for each line of a chart its last value, its age if it is old, and its maximum, null if that is the last. */
function said({ series, bytes: inBytes }, recent) {
  const figure = (value) => (inBytes ? bytes(value) : short(value));
  return series.filter(([name]) => recent.series[name]).map(([name, many, one = many]) => {
    const values = recent.series[name];
    const top = values.reduce((most, value, at) => (known(value) && value > (values[most] ?? -1) ? at : most), 0);
    const last = values.findLastIndex(known);
    const now = values[last];
    const old = recent.now_ms - recent.at_ms[last] > OLD_MS ? ` ${ago(recent.at_ms[last], recent.now_ms)}` : "";
    const most = values[top] > now ? `at most ${figure(values[top])} (${ago(recent.at_ms[top], recent.now_ms)})` : null;
    return [`${figure(now)} ${now === 1 ? one : many}${old}`, most];
  });
}

async function fill(wanted, recent) {
  library ??= import("./plot.js");
  const { Plot } = await library;
  for (const [element, plot] of plots) {
    if (!element.isConnected) { plot.end(); plots.delete(element); }
  }
  for (const chart of wanted) {
    const element = document.querySelector(`[data-chart="${chart.id}"]`);
    if (element === null) continue;
    if (!plots.has(element)) plots.set(element, new Plot(element));
    plots.get(element).show(chart, recent, KINDS);
  }
}
