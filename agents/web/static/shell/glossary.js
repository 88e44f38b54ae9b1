// What every word of the page means, in a sentence: a dialog that `?` opens.

import { h, patch } from "./dom.js";

const WORDS = [
  ["active", "The copy of a task that processes it. Each task has exactly one."],
  ["standby", "A copy of a task's state that is kept ready on another client, so that the task can move there at once."],
  ["warm-up", "A copy that is built on the client a task is to move to, so that the task moves without waiting. Kafka allows max.warmup.replicas of them at a time."],
  ["restoring", "The client owns the task and reads its state back from the changelog; the task processes nothing until that is done."],
  ["lag of a copy", "Offsets between the end of the task's changelogs and how far a copy has read them."],
  ["acceptable lag", "acceptable.recovery.lag: a copy with no more lag than this counts as caught up, and may take its task over."],
  ["estimated", "An upper bound rather than a measurement: the changelog's end may have grown since. Hatched in the matrix."],
  ["old", "Clients tell their lags at rebalances only. A figure that is more than a minute old is hatched, and says its age."],
  ["rebalance", "The members of a group give up and take partitions or tasks; each one makes a generation."],
  ["generation", "Kafka's number for one assignment of a group. It grows by one with each rebalance."],
  ["probing rebalance", "A rebalance that Kafka Streams asks for every probing.rebalance.interval.ms while warm-ups exist, to look whether they are caught up."],
  ["follow-up rebalance", "A rebalance right after another one: a task leaves its owner in the first, and the new owner gets it in the second."],
  ["leader", "The member that decides the assignment for its group."],
  ["match", "Kafka's own assignor, given what the leader saw, decides exactly what the leader decided."],
  ["mismatch", "Kafka's own assignor decides something else than the leader did, although every input is known."],
  ["undetermined", "An input that could change the decision is not known, so nobody can tell whether the leader decided as Kafka's assignor would."],
  ["recommended", "The assignment with the fewest movements that Kafka's own bounds allow, which an application may follow."],
  ["movement", "A task that is to change its owner, or a copy that is to be built somewhere."],
  ["lag", "Records that a group has still to read: the log's end less what it has committed."],
  ["in time", "The age of the oldest record that a group has not read, on its worst partition. ≥ means at least that."],
  ["ok", "The group keeps up with what is produced."],
  ["slow", "The group is behind for longer than its own rhythm explains; its lag falls or stays."],
  ["diverging", "The group is behind, and its lag keeps growing. Of a reassignment: a copy fetches less than its leader is written."],
  ["stalled", "There are records to read, and the group commits the same offset again and again. Of a reassignment: a copy has something to fetch, and does not grow."],
  ["stopped", "There are records to read, and the group has not committed for longer than its own rhythm explains."],
  ["rewound", "The group's commits went back to an earlier offset, or lie beyond the log's end; it has not regained its place yet."],
  ["unknown", "Something that the verdict needs can't be seen now; the reason says what."],
  ["reassignment", "A partition whose replicas move from some brokers to others."],
  ["moving", "The new replicas copy the partition, and get on."],
  ["tail", "All copies are there and are about to join the in-sync replicas, which takes a second or two."],
  ["throttled out", "A copy stands still because the replication throttle is used up by replicas that are in sync already."],
  ["blocked", "All copies are there, but one of them stays out of the in-sync replicas, or a replica that stays is away."],
  ["dead target", "A broker that the partition is reassigned to has been away for a minute."],
  ["contradiction", "What Connect's workers run isn't what their leader assigned, or isn't what they say of it."],
  ["zombie", "A connector or task that runs on a worker to which it isn't assigned."],
  ["unassigned", "A connector or task is configured, and no worker has it."],
  ["left out", "What the service could not work out, take or write. Everything else goes on; nothing old is shown in its place."],
];

const dialog = () => document.getElementById("glossary");
const idOf = (word) => `word-${word.replaceAll(" ", "-")}`;

/** Draw a word that opens its explanation; no stop for the tab key, which has one in `?`. */
export const word = (name, text = name) =>
  h("button", { type: "button", class: "word", tabindex: -1, "data-word": name, "aria-haspopup": "dialog" }, text);

/** Open the dialog, at a word if one is given; `docs` is the address of the documentation, if there is one. */
export function openGlossary(docs, name) {
  patch(dialog(), [
    h("div", { class: "tools" }, h("h2", { id: "glossary-title" }, "What the words mean"),
      h("button", { type: "button", "data-close": true, autofocus: true }, "Close")),
    h("dl", null, WORDS.map(([each, says]) => h("div", { key: each, id: idOf(each), class: each === name ? "wanted" : "" },
      h("dt", null, each), h("dd", null, says, docs && [" ",
        h("a", { href: new URL(`glossary/#${each.replaceAll(" ", "-")}`, `${docs.replace(/\/$/, "")}/`).href,
          target: "_blank", rel: "noreferrer", "aria-label": `${each}, in the documentation` }, "more")])))),
    h("h3", null, "Keys"),
    h("p", null, "? opens this. / goes to the search. Arrow keys move in a matrix and in a heat map, Home and End go to a row's ends; Enter on a heat map shows its cells. Esc closes."),
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
