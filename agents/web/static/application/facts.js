// What is known of an application as a whole: decisions, configs, costs, what was inferred.

import { h } from "../shell/dom.js";
import { ago, count, countdown, duration, known, plural } from "../shell/format.js";
import { word } from "../shell/glossary.js";

/** Every verdict on a decision: its colour, its sign, and what it says. */
export const VERDICTS = {
  match: ["ok", "✓", "as Kafka's own assignor decides"],
  mismatch: ["bad", "✗", "other than Kafka's own assignor decides"],
  undetermined: ["unsure", "?", "can't be told"],
};

/** Say when the next rebalance is due, and whether it is late; null if none is asked for. */
export function next(probing, nowMs) {
  if (!probing?.scheduled || !known(probing.due_ms)) return null;
  // A moment of 0 asks for a follow-up rebalance: a task changes hands in two steps.
  if (probing.due_ms === 0) return { what: "follow-up", when: "at once", late: false };
  return { what: "probing", when: countdown(probing.due_ms, nowMs), late: probing.due_ms < nowMs - 500 };
}

/** Describe the facts as terms with what is said of each. */
export function facts(app, nowMs) {
  const { probing, exact, recommendation } = app;
  const said = [];
  const due = next(probing, nowMs);
  if (due) {
    said.push([word(`${due.what} rebalance`, `Next ${due.what} rebalance`), h("b", { class: due.late ? "bad" : null }, due.when),
      probing.carried_by && `, carried by ${probing.carried_by}`,
      probing.worthwhile_now && h("b", { class: "ok" }, ", worth it now"),
      probing.why && h("span", { class: "why" }, probing.why)]);
  } else if (probing) {
    said.push([word("probing rebalance", "Next probing rebalance"), "none scheduled"]);
  }
  const { spark, own, silent_since_ms: silent } = app.rates ?? {};
  if (spark || own || known(silent)) {
    said.push(["Rates of copies", [spark && `${count(spark)} measured by Spark`, own && `${count(own)} by their own positions`]
      .filter(Boolean).join(", ") || "none known",
      known(silent) && h("span", { class: "why" }, `nothing from Spark any more: the last came ${ago(silent, nowMs)}`)]);
  }
  if (exact) {
    const [kind, sign, meaning] = VERDICTS[exact.result] ?? ["unsure", "?", exact.result];
    said.push([word(exact.result, "The leader decided"), h("b", { class: kind }, `${sign} ${meaning}`),
      exact.assignor && h("span", { class: "quiet" }, ` (${exact.assignor})`),
      exact.why && h("span", { class: "why" }, exact.why)]);
    if (exact.told) said.push(["The leader says", h("span", { class: "why" }, exact.told)]);
  }
  if (app.configs?.length) {
    said.push(["Configs", app.configs.map((one) => h("span", { key: one.name, class: "cost" },
      h("b", null, one.name), ` ${one.values}`,
      h("span", { class: "quiet", title: one.would_tell && `would tell more: ${one.would_tell}` }, ` ${one.known}`)))]);
  }
  if (recommendation) {
    const wanted = recommendation.probing_rebalance;
    said.push([word("recommended", "Recommended"), recommendation.movements.length
      ? plural(recommendation.movements.length, "movement") : "nothing to move",
    wanted?.reason && h("span", { class: "why" }, wanted.reason)]);
    const costs = [["caughtup", recommendation.cost], ["Kafka's assignor", recommendation.kafka_cost]];
    if (costs.every(([, cost]) => known(cost?.seconds)) && recommendation.movements.length) {
      said.push(["Until balanced", costs.map(([who, cost]) => h("span", { key: who, class: "cost" },
        h("b", null, plural(cost.copies, "copy", "copies")), ` and ${
          plural(cost.rebalances, "probing rebalance")}, ${duration(cost.seconds)}`,
        h("span", { class: "quiet" }, ` by ${who}${cost.estimated ? ", estimated" : ""}`)))]);
    }
    const inferred = recommendation.inputs?.inferred ?? [];
    if (inferred.length) said.push(["Inferred, not known", inferred.join("; ")]);
    const contradicted = recommendation.inputs?.contradicted ?? [];
    if (contradicted.length) said.push(["Wrong in the settings", contradicted.join("; ")]);
  }
  return said.map(([term, ...says], at) => h("div", { key: at }, h("dt", null, term), h("dd", null, says)));
}
