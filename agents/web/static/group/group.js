// A group's page: verdict, charts, tasks or connectors, partitions.

import { served } from "../shell/address.js";
import { h } from "../shell/dom.js";
import { count, known, plural } from "../shell/format.js";
import { word } from "../shell/glossary.js";
import { application } from "../application/application.js";
import { kind } from "../overview/groups.js";
import { happened } from "../overview/happened.js";
import { age, lasting, status } from "../overview/status.js";
import { connect } from "../views/connect.js";
import { charts } from "./charts.js";
import { members } from "./members.js";
import { partitions } from "./partitions.js";
import { rebalances } from "./rebalances.js";
import { why } from "./why.js";

const CHARTS = [
  { id: "lag", title: "Lag", series: [["lag", "offsets", "offset"]] },
  // The lines coincide while a group keeps up: the first is broad, to be visible under the second.
  { id: "rates", title: "Records a second", series: [["produced_per_second", "produced"], ["committed_per_second", "committed"]], alike: true },
  { id: "copies", title: "Copies being built", series: [["warmups", "warm-ups", "warm-up"], ["restoring", "restoring"]] },
];

/** Describe a group, or that it is unknown and what to do. */
export function group(state, name, ui, nowMs) {
  const { group: summary, application: streams, connect: workers } = state;
  if (!summary && !streams && !workers) return missing(state, name);
  const over = charts(CHARTS, ui, { history: state.history === true });
  return [
    h("div", { key: "headline", class: "wide panel headline" },
      h("p", { class: "quiet tools" }, h("a", { href: served("") }, "All groups"), grafana(state, name)),
      h("h2", { class: "fixed" }, h("bdi", null, name)),
      summary && h("p", { class: "quiet" }, kind(summary, nowMs)),
      summary && h("dl", { class: "facts" }, facts(summary, state.next_assignor, nowMs)),
      (summary || workers) && why(name, ui),
      summary && members(summary, name, ui, nowMs)),
    over && h("div", { key: "charts", class: "wide" }, over),
    streams && h("div", { key: "streams", class: "wide" }, application(streams, ui, nowMs)),
    workers && h("div", { key: "connect", class: "wide" }, connect(workers, nowMs)),
    h("div", { key: "main", class: "column" }, rebalances(state, nowMs), partitions(state, ui, nowMs)),
    h("div", { key: "side", class: "column" }, happened(state.feed, ui, nowMs, name)),
  ];
}

function facts(summary, assignor, nowMs) {
  const lag = known(summary.lag) ? count(summary.lag)
    : known(summary.lag_at_least) ? `≥ ${count(summary.lag_at_least)}` : "not known";
  return [
    [word(summary.status ?? "unknown", "Status"), status(summary.status), " ", lasting(summary, nowMs), summary.why && h("span", { class: "why" }, summary.why)],
    [word("lag", "Lag"), h("b", null, lag),
      known(summary.lag) || known(summary.lag_at_least) ? ` offset${summary.lag === 1 ? "" : "s"}` : "",
      !known(summary.lag) && h("span", { class: "why" }, "the log end of a partition is not known")],
    [word("in time", "Lag in time"), h("b", null, age(summary))],
    known(assignor) && ["Assignor", assignor || "not known",
      h("span", { class: "why" }, assignor ? "its coordinator assigns by it next" : "its coordinator names none")],
  ].filter(Boolean).map(([term, ...says], at) => h("div", { key: at }, h("dt", null, term), h("dd", null, says)));
}

/** Describe a link to the group in Grafana, if the settings have its address. */
function grafana(state, name) {
  const { grafana: address } = state.links ?? {};
  if (!/^https?:\/\//i.test(address ?? "") || !URL.canParse(address)) return null;
  const url = new URL(address);
  url.searchParams.set("var-group", name);
  return h("a", { href: url.href, target: "_blank", rel: "noreferrer" }, "This group in Grafana");
}

function missing(state, name) {
  return [h("section", { key: "missing", class: "wide panel" },
    h("h2", { class: "fixed" }, h("bdi", null, name)),
    h("p", null, state.ready ? "There is no group of this name."
      : "Not known yet: the service is still reading the log of groups."),
    state.ready && h("ul", { class: "points" },
      h("li", null, "A group exists once it has a member or has committed. Kafka deletes one that has had neither for offsets.retention.minutes."),
      h("li", null, "The name must be the clients' group.id or application.id. ",
        h("a", { href: served(`?find=${encodeURIComponent(name)}`) }, "Find names that contain this one")),
      h("li", null, "The settings may ignore the group: the overview shows how many groups are ignored.")),
    h("p", null, h("a", { href: served("") }, "All groups")))];
}

/** Return the window's title: the group, and what is being built. */
export function groupTitle(state, name) {
  const building = (state?.application?.tasks ?? []).flatMap((task) => task.copies).filter((copy) => copy.role === "warmup");
  return building.length ? `${name} · ${plural(building.length, "warm-up")}` : name;
}
