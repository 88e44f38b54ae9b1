// Figures over the last hours, with what happened as marks: descriptions, and what fills them.

import { h } from "../shell/dom.js";
import { ago, bytes, count, known, moment, short } from "../shell/format.js";

const KINDS = { rebalance: "↻", verdict: "◆", movement: "→", reassignment: "⇄", connect: "⌁", service: "●" };
const MARKS_SAID = 6;

let library = null; // uPlot, once a chart is looked at
const plots = new Map();

/** Describe charts of what `ui.recent` has; each is filled after it is drawn. */
export function charts(wanted, ui) {
  const { recent } = ui;
  if (!recent?.at_ms?.length) return null;
  const there = wanted.filter((chart) => chart.series.some(([name]) => recent.series?.[name]?.some(known)));
  if (!there.length) return null;
  ui.after.push(() => fill(there, recent));
  const marks = (recent.marks ?? []).filter((mark) => mark.at_ms >= recent.at_ms[0]);
  return h("section", { key: "charts", class: "panel", "aria-label": "The last hours" },
    h("div", { class: "charts" }, there.map((chart) => h("figure", { key: chart.id },
      h("figcaption", null, h("b", null, chart.title), said(chart, recent).map((line, at) =>
        h("span", { key: at, class: "quiet" }, h("span", { class: `line line-${at}`, "aria-hidden": "true" }), line))),
      h("div", { class: "chart", "data-chart": chart.id, "data-tips": true, opaque: true, role: "img",
        "aria-label": `${chart.title}: ${said(chart, recent).join("; ")}` })))),
    marks.length > 0 && h("details", { class: "marks" },
      h("summary", null, `${count(marks.length)} marked: `,
        Object.entries(KINDS).filter(([kind]) => marks.some((mark) => mark.kind === kind)).map(([kind, sign]) =>
          h("span", { key: kind, class: "quiet" }, ` ${sign} ${kind === "connect" ? "Connect" : kind}`))),
      h("ol", null, marks.slice(-MARKS_SAID * 5).reverse().map((mark) => h("li", { key: `${mark.at_ms} ${mark.text}` },
        h("span", { class: "quiet" }, `${moment(mark.at_ms)} `), KINDS[mark.kind] ?? "·", ` ${mark.text}`,
        mark.why && h("span", { class: "quiet" }, `: ${mark.why}`))))));
}

/** Say each line of a chart: what it is now, and what it was at most. */
function said({ series, bytes: inBytes }, recent) {
  const figure = (value) => (inBytes ? bytes(value) : short(value));
  return series.filter(([name]) => recent.series[name]).map(([name, many, one = many]) => {
    const values = recent.series[name];
    const top = values.reduce((most, value, at) => (known(value) && value > (values[most] ?? -1) ? at : most), 0);
    const most = values[top] > 0 ? `, at most ${figure(values[top])} ${ago(recent.at_ms[top], recent.now_ms)}` : "";
    const now = values.findLast(known);
    return `${figure(now)} ${now === 1 ? one : many}${most}`;
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
