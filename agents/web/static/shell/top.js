// The parts of every view: header with the service's state, notices, footer with links.

import { served } from "./address.js";
import { h } from "./dom.js";
import { ago, count, duration, known, moment, plural, short } from "./format.js";

const LINKS = {
  live: ["ok", "live"],
  polling: ["ok", "live, polled every 2 s"],
  lost: ["bad", "connection lost, retrying"],
  unreadable: ["bad", "the page cannot read the service's answer: reload"],
  waiting: ["unsure", "connecting"],
};
const PLACES = [
  ["", "overview", "Overview"], ["reassignments", "reassignments", "Reassignments"], ["transactions", "transactions", "Transactions"], ["connect", "connect", "Connect"],
  ["streams", "streams", "Spark"], ["health", "health", "Health"],
];
/** The allowed schemes of links from settings: no scripts. */
const isWeb = (url) => /^https?:\/\//i.test(url ?? "");

/** Describe the header. */
export function top(state, link, view) {
  const [kind, text] = LINKS[link];
  return [
    h("h1", null, h("a", { href: served("") }, "caughtup")),
    state && h("span", { class: "quiet fixed", title: `cluster ${state.cluster}` }, h("bdi", null, state.cluster_name ?? state.cluster)),
    h("nav", { "aria-label": "Views" }, PLACES.map(([path, name, said]) =>
      h("a", { key: name, href: served(path), "aria-current": view === name ? "page" : null }, said))),
    h("span", { class: "state" },
      state?.reader?.decode_errors > 0 && h("span", { class: "chip bad" }, plural(state.reader.decode_errors, "decode error")),
      h("span", { class: `link ${kind}` }, text),
      h("button", { type: "button", "data-glossary": true, title: "what the terms mean (?)", "aria-label": "What the terms mean" }, "?")),
  ].filter(Boolean);
}

/** Describe the notices. `age`: seconds since the last state was made. */
export function notices(state, link, age) {
  const said = [];
  if (link === "lost") {
    said.push(h("p", { key: "lost", class: "notice bad" }, "Connection lost, retrying. ", state
      && h("span", { "aria-live": "off" }, `The page shows the last answer, ${duration(age)} old, of ${moment(state.now_ms)}.`)));
  }
  const catchingUp = "catching up";
  for (const reason of (state?.unready ?? []).filter((each) => !each.startsWith(catchingUp))) {
    said.push(h("p", { key: reason, class: "notice bad" }, `Not ready. ${reason}`));
  }
  if (state?.unready?.some((each) => each.startsWith(catchingUp))) {
    const { records = 0, lag } = state.reader ?? {};
    const share = Number.isFinite(lag) && records + lag > 0 ? records / (records + lag) : 0;
    said.push(h("p", { key: "ready", class: "notice" }, "Reading the log of groups: ",
      Number.isFinite(lag) ? `${plural(lag, "record")} to read. Figures may be old until then.` : "its length is not known yet.",
      h("span", { class: "progress", "--share": share.toFixed(3) })));
  }
  for (const each of (state?.instances ?? []).filter(({ why }) => known(why))) {
    said.push(h("p", { key: `instance ${each.name}`, class: "notice bad" }, `The instance ${each.name}: ${each.why}. `,
      known(each.as_of_ms) ? `Its ${plural(each.partitions, "partition")} of groups are shown as of ${ago(each.as_of_ms, state.now_ms)}.`
        : `The groups of its ${plural(each.partitions, "partition")} are not shown.`));
  }
  for (const each of state?.notices ?? []) said.push(h("p", { key: each, class: "notice" }, each));
  return said;
}

/** Describe the footer: what the service has read, and links. */
export function bottom(state) {
  if (!state) return [];
  const { grafana, docs, runbooks } = state.links ?? {};
  const out = [["Grafana", grafana], ["Runbooks", runbooks], ["Documentation", docs]].filter(([, url]) => isWeb(url));
  return [
    state.reader && h("span", null, `${short(state.reader.records)} records read`,
      known(state.reader.lag) && `, ${count(state.reader.lag)} behind`),
    h("span", null, `caughtup ${state.version}`),
    h("span", { class: "grow" }),
    h("a", { href: served("metrics"), target: "_blank" }, "Metrics"),
    ...out.map(([name, url]) => h("a", { key: name, href: url, target: "_blank", rel: "noreferrer" }, name)),
  ].filter(Boolean);
}
