// The glossary of the page: a dialog that `?` opens.

import { h, patch } from "./dom.js";

const WORDS = [
  ["active", "The copy of a task that processes it. Each task has exactly one."],
  ["standby", "A copy of a task's state that another client keeps up to date, so that the task can move there at once."],
  ["warm-up", "A copy that Kafka Streams builds on the client to which a task is to move, so that the task need not wait. max.warmup.replicas limits how many there are at a time."],
  ["restoring", "The client owns the task and restores its state from the changelog; until then the task processes nothing."],
  ["lag of a copy", "The offsets of the task's changelogs that a copy has yet to restore."],
  ["acceptable lag", "acceptable.recovery.lag: a copy with at most this lag counts as caught up, and may take its task over."],
  ["estimated", "An upper bound rather than a measurement: the changelog's end may have grown since. Hatched in the matrix."],
  ["old", "Clients report their lags only at rebalances. The page hatches a figure that is more than a minute old, and shows its age."],
  ["rebalance", "The group's leader or coordinator assigns partitions or tasks again. Each rebalance begins a generation."],
  ["generation", "Kafka's number for one assignment of a group. It grows by one with each rebalance."],
  ["probing rebalance", "A rebalance every probing.rebalance.interval.ms while warm-ups exist, in which the leader checks whether they are caught up."],
  ["follow-up rebalance", "A rebalance right after another one: a task leaves its owner in the first, and the new owner gets it in the second."],
  ["leader", "The member that decides the assignment for its group."],
  ["match", "From the leader's inputs, Kafka's own assignor decides exactly what the leader decided."],
  ["consistent", "Some inputs are known only within bounds; with some values within all of these bounds, Kafka's own assignor decides exactly what the leader decided."],
  ["mismatch", "Every input is known, and Kafka's own assignor decides differently from the leader."],
  ["undetermined", "An input is unknown, so caughtup cannot say whether Kafka's own assignor decides the same as the leader."],
  ["recommended", "The assignment with the fewest movements within Kafka's own bounds. An application may follow it."],
  ["movement", "A task that is to change its client, or a copy that is to be built or dropped."],
  ["lag", "The offsets that a read_committed consumer of the group has yet to read."],
  ["in time", "The age of the oldest record that the group has not read, on its worst partition. ≥ means at least."],
  ["ok", "The group keeps up with its producers."],
  ["slow", "The group is behind for longer than three of its usual intervals; its lag falls or stays."],
  ["diverging", "The group is behind, and its lag grows. Of a reassignment: a copy gets less than is written to its leader."],
  ["stalled", "There are records to read, and the group commits the same offset again and again. Of a reassignment: a copy has records to fetch, and does not grow."],
  ["stopped", "There are records to read, and the group has not committed for more than three of its usual intervals."],
  ["rewound", "The group's commits went back to an earlier offset, or lie beyond the log's end; the group has not regained its place yet."],
  ["unknown", "A figure that the verdict needs is not known; the reason says which."],
  ["reassignment", "The controller moves replicas of a partition from some brokers to others."],
  ["moving", "The added replicas copy the partition, and grow."],
  ["tail", "All copies are complete and about to join the in-sync replicas, which takes a second or two."],
  ["throttled out", "A copy does not grow because in-sync replicas use up the replication throttle."],
  ["blocked", "All copies are complete, but one of them stays out of the in-sync replicas, or the broker of a replica that stays is down."],
  ["dead target", "A broker that is to get a replica of the partition has been down or fenced for a minute, or cannot use the log directory."],
  ["contradiction", "A status on Connect's status topic contradicts the leader's assignment."],
  ["zombie", "A connector or task that reports RUNNING on a worker to which it is not assigned."],
  ["unassigned", "A connector or task that is configured and assigned to no worker."],
  ["left out", "What the service could not compute, read or write. The service continues with everything else; the page shows no old figure in place of a missing one."],
];

const dialog = () => document.getElementById("glossary");
const idOf = (word) => `word-${word.replaceAll(" ", "-")}`;

/** Describe a word that opens its explanation; not a tab stop, as `?` is one. */
export const word = (name, text = name) =>
  h("button", { type: "button", class: "word", tabindex: -1, "data-word": name, "aria-haspopup": "dialog" }, text);

/** Where the documentation explains a word: browsers scroll to its text, in which a dash must be escaped. */
const inDocs = (docs, text) =>
  new URL(`glossary/#:~:text=${encodeURIComponent(text).replaceAll("-", "%2D")}`, `${docs.replace(/\/$/, "")}/`).href;

/** Open the dialog, at a word if given; `docs` is the documentation's address, if set. */
export function openGlossary(docs, name) {
  patch(dialog(), [
    h("div", { class: "tools" }, h("h2", { id: "glossary-title" }, "What the terms mean"),
      h("button", { type: "button", "data-close": true, autofocus: true }, "Close")),
    h("dl", null, WORDS.map(([each, says]) => h("div", { key: each, id: idOf(each), class: each === name ? "wanted" : "" },
      h("dt", null, each), h("dd", null, says, docs && [" ",
        h("a", { href: inDocs(docs, each),
          target: "_blank", rel: "noreferrer", "aria-label": `${each}, in the documentation` }, "more")])))),
    h("h3", null, "Keys"),
    h("p", null, "? opens this list. / goes to the search. The arrow keys move in a matrix and in a heat map; Home and End go to the ends of a row; Enter on a heat map shows its cells. Esc closes."),
  ]);
  if (!dialog().open) dialog().showModal();
  document.getElementById(idOf(name ?? ""))?.scrollIntoView({ block: "center" });
}

/** Open the dialog by `?`, by a word that is pressed, or by the button with `data-glossary`. */
export function installGlossary(docs) {
  document.addEventListener("click", (event) => {
    const pressed = event.target.closest?.("[data-word], [data-glossary]");
    if (pressed) openGlossary(docs(), pressed.dataset.word);
    else if (event.target.closest?.("[data-close]") || event.target === dialog()) dialog().close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "?" || event.target.closest?.("input") || event.ctrlKey || event.metaKey) return;
    openGlossary(docs());
  });
}
