// The page: takes the state, keeps what the person looking at it chose, and draws both.

import { application } from "./application.js";
import { connect } from "./connect.js";
import { groups } from "./groups.js";
import { h, patch } from "./dom.js";
import { count, plural, short } from "./format.js";
import { faults } from "./faults.js";
import { follow } from "./feed.js";
import { installKeys } from "./keys.js";
import { reassignments } from "./reassignments.js";
import { streams } from "./streams.js";
import { installTip } from "./tip.js";

const OPENED_AT_MOST = 4;
const LINKS = {
  live: ["ok", "live"],
  polling: ["ok", "live, by asking every 2 s"],
  lost: ["bad", "connection lost, retrying"],
  unreadable: ["bad", "the service says something this page can't read: reload"],
  waiting: ["unsure", "connecting"],
};

const at = (id) => document.getElementById(id);
const ui = { open: new Map(), filters: new Map(), focus: new Map(), everything: new Set(), search: "", width: 0 };
let state = null;
let skew = 0; // the service's clock less this one's, in ms
let link = "waiting";
let drawn = false;

const now = () => Date.now() + skew;

function draw() {
  drawn = true;
  patch(at("top"), top());
  patch(at("notices"), notices());
  if (state === null) return;
  const apps = state.applications ?? [];
  const workers = state.connect ?? [];
  ui.openByDefault = apps.length + workers.length <= OPENED_AT_MOST;
  // Widths are measured before anything is laid out anew: the matrix is cut to fit.
  ui.width = at("main").querySelector(".app")?.clientWidth ?? Math.min(at("main").clientWidth, 1200);
  patch(at("main"), [
    h("div", { key: "apps", class: "apps" },
      h("h2", { class: "unseen" }, "Streams applications"),
      apps.length ? apps.map((app) => application(app, ui, now())) : h("p", { class: "panel quiet" },
        state.ready ? "No Kafka Streams application has joined a group yet." : "Reading who is there."),
      workers.length > 0 && h("h2", { key: "connect", class: "unseen" }, "Connect"),
      workers.map((each) => connect(each, ui, now()))),
    h("div", { key: "side", class: "side" }, reassignments(state, now()), groups(state, ui.search, now()),
      streams(state, now()), faults(state, now())),
  ]);
  document.title = title(apps);
}

function title(apps) {
  const moving = apps.flatMap((app) => app.tasks.flatMap((t) => t.copies)).filter((c) => c.role === "warmup");
  return moving.length ? `${plural(moving.length, "warm-up")} · caughtup` : "caughtup";
}

function top() {
  const [kind, text] = LINKS[link];
  const reader = state?.reader;
  return [
    h("h1", null, "caughtup"),
    state && h("span", { class: "quiet fixed", title: `cluster ${state.cluster}` }, state.cluster_name ?? state.cluster),
    h("span", { class: "grow" }),
    reader && h("span", { class: "quiet" }, `${short(reader.records)} records read, ${count(reader.lag)} behind`),
    reader?.decode_errors > 0 && h("span", { class: "chip bad" }, plural(reader.decode_errors, "decode error")),
    state && h("span", { class: "quiet" }, state.version),
    h("span", { class: `link ${kind}` }, text),
  ].filter(Boolean);
}

function notices() {
  const said = [];
  if (link === "lost") {
    said.push(h("p", { key: "lost", class: "notice bad" }, state
      ? "Connection lost, retrying. What follows is the last that was heard."
      : "Connection lost, retrying."));
  }
  const catchingUp = "catching up";
  for (const reason of (state?.unready ?? []).filter((each) => !each.startsWith(catchingUp))) {
    said.push(h("p", { key: reason, class: "notice bad" }, `Not ready. ${reason}`));
  }
  if (state?.unready?.some((each) => each.startsWith(catchingUp))) {
    const { records = 0, lag } = state.reader ?? {};
    const share = Number.isFinite(lag) && records + lag > 0 ? records / (records + lag) : 0;
    said.push(h("p", { key: "ready", class: "notice" }, "Catching up with the log: ",
      Number.isFinite(lag) ? `${plural(lag, "record")} to go. Figures may still be old.` : "looking how long it is.",
      h("span", { class: "progress", "--share": share.toFixed(3) })));
  }
  for (const each of state?.notices ?? []) {
    said.push(h("p", { key: each, class: "notice" }, each));
  }
  return said;
}

/** Draw at most once a frame, however much arrives. */
function redraw() {
  if (!drawn) return;
  drawn = false;
  requestAnimationFrame(draw);
}

document.addEventListener("toggle", (event) => {
  const key = event.target.dataset?.open;
  if (key === undefined || event.target.open === (ui.open.get(key) ?? ui.openByDefault)) return;
  ui.open.set(key, event.target.open);
  redraw();
}, true);
document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.filter) ui.filters.set(button.dataset.group, button.dataset.filter);
  if (button?.dataset.everything) ui.everything.add(button.dataset.everything);
  if (button) redraw();
});
document.addEventListener("input", (event) => {
  if (event.target.dataset.search === undefined) return;
  ui.search = event.target.value;
  redraw();
});

installKeys((group, cell) => { ui.focus.set(group, cell); redraw(); });
installTip(() => state, now);
new ResizeObserver(redraw).observe(at("main"));
setInterval(redraw, 1000); // countdowns and ages
draw();
follow(
  (next) => { skew = next.now_ms - Date.now(); state = next; redraw(); },
  (next) => { link = next; redraw(); },
);
