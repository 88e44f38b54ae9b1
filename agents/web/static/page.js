// The page: follows the view in its address, keeps the user's choices, and draws both.

import { choose, here, installLinks } from "./shell/address.js";
import { declare } from "./shell/declared.js";
import { forget, h, patch } from "./shell/dom.js";
import { follow } from "./shell/follow.js";
import { installGlossary } from "./shell/glossary.js";
import { installKeys } from "./shell/keys.js";
import { isolated } from "./shell/names.js";
import { followRecent } from "./shell/recent.js";
import { installCells } from "./shell/table.js";
import { hideTip, installTip } from "./shell/tip.js";
import { bottom, notices, top } from "./shell/top.js";
import { clientNames, indexed, lines } from "./application/copies.js";
import { installHeatmap } from "./application/heatmap.js";
import { group, groupTitle } from "./group/group.js";
import { CELLS } from "./cells.js";
import { happened } from "./overview/happened.js";
import { building, overview } from "./overview/overview.js";
import { connects } from "./views/connect.js";
import { wholeHealth } from "./views/health.js";
import { reassignments } from "./views/reassignments.js";
import { streams } from "./views/streams.js";
import { transactions } from "./views/transactions.js";

const VIEWS = {
  overview: { draw: overview, title: building, recent: "api/recent" },
  reassignments: { draw: (state) => [reassignments(state, now()), state.feed?.length > 0 && happened(state.feed, ui, now())], title: () => "Reassignments", recent: null },
  transactions: { draw: (state) => [transactions(state, now()), state.feed?.length > 0 && happened(state.feed, ui, now())], title: () => "Transactions", recent: null },
  connect: { draw: (state) => [connects(state, now())], title: () => "Connect", recent: null },
  streams: { draw: (state) => [streams(state, now(), true)], title: () => "Spark", recent: null },
  health: { draw: (state) => wholeHealth(state, ui, now()), title: () => "Health", recent: null },
};
/** If groups are left out, the service searches for the filter's text after this pause in typing. */
const FIND_AFTER_MS = 300;
/** A background tab follows for this long, for the title. */
const REST_AFTER_MS = 60_000;
/** The days that a group's charts may show, if the service reads the history. */
const DAYS = ["1", "7", "30"];

const at = (id) => document.getElementById(id);
/** The user's choices (`query`, `focus`), the window's `width`, and what runs after drawing. */
const ui = { query: new URLSearchParams(), focus: null, width: 0, recent: null, after: [], redraw };
let place = { view: null };
let followed = null; // the followed view, and how to stop
let charted = null; // likewise for the charts' data
let state = null;
let heardAt = 0; // when the state was received, by a monotonic clock
let link = "waiting";
let findsThere = false; // the service leaves groups out, so it has to search
let drawn = false;

/** Return the service's time, independent of this machine's clock. */
const now = () => (state === null ? Date.now() : state.now_ms + performance.now() - heardAt);

function draw() {
  drawn = true;
  patch(at("top"), top(state, link, place.view));
  patch(at("notices"), notices(state, link, (performance.now() - heardAt) / 1000));
  patch(at("bottom"), bottom(state));
  // Measured before the layout changes: the matrix is cut to fit.
  const app = at("main").querySelector(".app");
  ui.width = app ? app.clientWidth - 28 : Math.min(at("main").clientWidth, document.documentElement.clientWidth) - 62;
  ui.after = [];
  patch(at("main"), h("main", null, view()).children);
  for (const after of ui.after) after();
  document.title = title();
}

function view() {
  if (place.view === "nowhere") return [h("p", { class: "panel" }, "There is no page at this address.")];
  if (state === null) return [h("p", { key: "waiting", class: "quiet" }, link === "lost" ? "" : "Asking the service.")];
  if (place.view === "group") return group(state, place.group, ui, now());
  return VIEWS[place.view].draw(state, ui, now());
}

function title() {
  const said = place.view === "group" ? groupTitle(state, isolated(place.group)) : state && VIEWS[place.view]?.title(state);
  return said ? `${said} · caughtup` : "caughtup";
}

/** Draw at most once a frame. */
function redraw() {
  if (!drawn) return;
  drawn = false;
  requestAnimationFrame(draw);
}

/** Follow the view in the address, unless it is followed already. */
function move({ forward = false } = {}) {
  const before = place;
  place = here();
  ui.query = place.query;
  const elsewhere = before.view !== place.view || before.group !== place.group;
  if (elsewhere) {
    forget();
    hideTip();
    [state, findsThere, link, ui.focus, ui.recent] = [null, false, "waiting", null, null];
  }
  listen();
  if (elsewhere && forward) {
    scrollTo(0, 0);
    at("main").focus({ preventScroll: true });
  }
  draw();
}

function listen() {
  followed = following(followed, request(), (wanted) => follow(wanted, hear, (next) => { link = next; redraw(); }));
  charted = following(charted, figures(), (path) => followRecent(path, (next) => { ui.recent = next; redraw(); }));
}

/** Follow what is wanted, null for nothing; keeps the current one if it is the same. */
function following(before, wanted, begin) {
  if (before?.wanted === wanted) return before;
  before?.end();
  return wanted === null ? null : { wanted, end: begin(wanted) };
}

/** Return the path of the charts' data for the view: the last hours, or days. */
function figures() {
  if (place.view !== "group") return VIEWS[place.view]?.recent ?? null;
  const group = `api/groups/${encodeURIComponent(place.group)}`;
  const days = ui.query.get("days");
  return DAYS.includes(days) ? `${group}/history?days=${days}` : `${group}/recent`;
}

function request() {
  if (place.view === "nowhere") return null;
  if (place.view === "group") return new URLSearchParams({ group: place.group }).toString();
  const find = findsThere && ui.query.get("find");
  return new URLSearchParams({ view: place.view, ...(find ? { find } : {}) }).toString();
}

function hear(next) {
  declare(next.declared);
  [state, heardAt] = [next, performance.now()];
  if (next.groups_more > 0 && !findsThere) {
    findsThere = true;
    listen();
  }
  redraw();
}

/** Stop following: a hidden page would hold one of the few connections that a browser allows. */
function rest() {
  followed?.end();
  charted?.end();
  [followed, charted] = [null, null];
}

/** Keep a choice in the address, so that a reload and a link have it. */
function chosen(choices) {
  choose(choices);
  ui.query = here().query;
  if ("days" in choices) {
    ui.recent = null;
    listen();
  }
  redraw();
}

let finding = null;
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-choose]");
  if (button) chosen({ [button.dataset.choose]: button.dataset.value });
});
document.addEventListener("input", (event) => {
  if (event.target.dataset.search === undefined) return;
  chosen({ [event.target.dataset.search]: event.target.value });
  clearTimeout(finding);
  finding = setTimeout(listen, FIND_AFTER_MS);
});
at("skip").addEventListener("click", () => at("main").focus());

/** Return the text of a matrix cell, with its age. */
function cellLines(cell) {
  const app = state?.application;
  const [task, process] = cell.dataset.cell.split("|");
  const client = app?.clients.find((each) => each.process === process);
  const found = app?.tasks.find((each) => each.task === task);
  return client && found && lines(app, client, found, indexed(app).copies.get(task)?.get(process), clientNames(app), now());
}

installCells(CELLS);
installLinks(move);
installKeys((cell) => { ui.focus = cell; redraw(); });
installTip(cellLines);
installHeatmap((zoom) => chosen({ zoom }));
installGlossary(() => state?.links?.docs);
new ResizeObserver(redraw).observe(at("main"));
setInterval(redraw, 1000); // countdowns and ages
addEventListener("pagehide", (event) => { if (event.persisted) rest(); });
addEventListener("pageshow", (event) => { if (event.persisted) move(); });
let hidden = null;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hidden);
  if (document.hidden) hidden = setTimeout(rest, REST_AFTER_MS);
  else listen();
});
move();
