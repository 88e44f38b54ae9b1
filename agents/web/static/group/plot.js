// One chart, drawn by uPlot: lines over time, and upright marks where something happened.

import uPlot from "../vendor/uplot-1.6.32/uPlot.esm.js";
import { bytes, clockTime, day, moment, short } from "../shell/format.js";
import { hideTip, showTip } from "../shell/tip.js";

const HEIGHT = 132;
const NEAR_PX = 6;
/** A longer range in seconds has days on its axis. */
const LONG_SECONDS = 40 * 3_600;
const MINUTE_SECONDS = 60;
/** Steps of an axis of counts: whole numbers only. */
const WHOLE = Array.from({ length: 19 }, (_, power) => [1, 2, 5].map((step) => step * 10 ** power)).flat();
const COLOURS = ["--plot", "--warmup", "--restoring"];
const together = uPlot.sync("time");
const dark = matchMedia("(prefers-color-scheme: dark)");

/** A chart in an element, updated by `show`. */
export class Plot {
  constructor(element) {
    this.element = element;
    this.plot = null;
    this.shown = null;
    this.resized = new ResizeObserver(() => {
      if (this.plot && element.clientWidth) this.plot.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    this.resized.observe(element);
    this.recoloured = () => { this.#remove(); if (this.shown) this.#draw(); };
    dark.addEventListener("change", this.recoloured);
  }

  /** Show series, unless they are shown already. */
  show(chart, recent, signs) {
    if (this.shown?.recent === recent) return;
    const names = chart.series.filter(([name]) => recent.series[name]).map(([name]) => name).join();
    if (this.names !== names) this.#remove();
    this.names = names;
    this.shown = { chart, recent, signs };
    this.#draw();
  }

  /** Remove the chart. */
  end() {
    this.resized.disconnect();
    dark.removeEventListener("change", this.recoloured);
    this.#remove();
  }

  #remove() {
    this.plot?.destroy();
    this.plot = null;
  }

  #draw() {
    const { chart, recent } = this.shown;
    const series = chart.series.filter(([name]) => recent.series[name]);
    const data = [recent.at_ms.map((ms) => ms / 1000), ...series.map(([name]) => recent.series[name])];
    if (this.plot) this.plot.setData(data);
    else this.plot = new uPlot(this.#options(chart, series), data, this.element);
  }

  #options(chart, series) {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const figure = (value) => (chart.bytes ? bytes(value) : short(value));
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false },
      font: "11px system-ui, sans-serif" };
    return {
      width: this.element.clientWidth,
      height: HEIGHT,
      cursor: { sync: { key: together.key }, y: false, drag: { x: false, y: false }, points: { size: 6 } },
      legend: { show: false },
      scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [
        { ...axis, space: 60, size: 24, values: ({ scales: { x } }, seconds, _axis, _space, step) => seconds.map((each) =>
          (x.max - x.min > LONG_SECONDS ? day(each * 1000) : clockTime(each * 1000).slice(0, step < MINUTE_SECONDS ? 8 : 5))) },
        { ...axis, size: 46, space: 18, incrs: WHOLE, values: (_, values) => values.map(figure) },
      ],
      series: [{}, ...series.map(([, name], at) => ({
        label: name, stroke: colour(COLOURS[at]), width: chart.alike && at === 0 ? 3.5 : 1.5, spanGaps: false, points: { show: false }, value: (_, v) => figure(v),
      }))],
      hooks: {
        draw: [(plot) => this.#drawMarks(plot, colour("--quiet"))],
        setCursor: [(plot) => this.#point(plot, series, figure)],
      },
    };
  }

  #marks() {
    const { at_ms: times, marks } = this.shown.recent;
    return (marks ?? []).filter((mark) => mark.at_ms >= times[0]);
  }

  #drawMarks(plot, colour) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = colour;
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    for (const mark of this.#marks()) {
      const x = Math.round(plot.valToPos(mark.at_ms / 1000, "x", true));
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
    }
    ctx.stroke();
    ctx.restore();
  }

  /** Show the values under the pointer, on the chart that it is over. */
  #point(plot, series, figure) {
    const { left, idx, event } = plot.cursor;
    if (!event || !this.element.contains(event.target)) return;
    if (left < 0 || idx === null || idx === undefined) { hideTip(); return; }
    const { recent, signs } = this.shown;
    const near = this.#marks().filter((mark) => Math.abs(plot.valToPos(mark.at_ms / 1000, "x") - left) < NEAR_PX);
    const box = plot.over.getBoundingClientRect();
    showTip([moment(recent.at_ms[idx]),
      ...series.map(([name, what]) => `${what}: ${figure(recent.series[name][idx])}`),
      ...near.slice(-4).map((mark) => `${signs[mark.kind] ?? "·"} ${clockTime(mark.at_ms)} ${mark.text}${mark.why ? `: ${mark.why}` : ""}`),
    ], { left: box.left + left + 12, top: box.top, bottom: box.bottom });
  }
}
