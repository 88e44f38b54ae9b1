// A figure's last half hour in the height of a line of text.

import { h } from "../shell/dom.js";
import { known, short } from "../shell/format.js";

const WIDTH = 90;
const HEIGHT = 20;

/** Describe samples, oldest first; null (unknown) leaves a gap. Nothing if fewer than two are known. */
export function sparkline(samples, what) {
  const values = (samples ?? []).filter(known);
  if (values.length < 2) return null;
  const top = Math.max(...values) || 1;
  const step = WIDTH / Math.max(1, samples.length - 1);
  let line = "";
  samples.forEach((value, at) => {
    if (!known(value)) return;
    const move = at > 0 && known(samples[at - 1]) ? "L" : "M";
    line += `${move}${(at * step).toFixed(1)} ${(HEIGHT - 1.5 - (value / top) * (HEIGHT - 3)).toFixed(1)}`;
  });
  return h("svg", { class: "sparkline", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img",
    "aria-label": `${what}: from ${short(values[0])} to ${short(values.at(-1))}, at most ${short(Math.max(...values))}` },
  h("path", { d: line }));
}
