// Facts about an application: decisions, configs, costs, inferred values.

import { styleOf } from "../shell/declared.js";
import { h } from "../shell/dom.js";
import { ago, count, countdown, duration, known, plural } from "../shell/format.js";
import { word } from "../shell/glossary.js";
import { changeFact } from "../overview/changes.js";
import { indexed } from "./copies.js";

/** Describe when the next rebalance is due, and whether it is late; null if none is scheduled. */
export function next(probing, nowMs) {
  if (!probing?.scheduled || !known(probing.due_ms)) return null;
  // 0 is an immediate follow-up rebalance: a task moves in two steps.
  if (probing.due_ms === 0) return { what: "follow-up", when: "at once", late: false };
  return { what: "probing", when: countdown(probing.due_ms, nowMs), late: probing.due_ms < nowMs - 500 };
}

/** Describe the costs of both plans, a line each; null if unknown. */
export function costs({ cost, kafka_cost: kafkas }) {
  if (!known(cost?.seconds) || !known(kafkas?.seconds)) return null;
  return [["caughtup", cost], ["Kafka's assignor", kafkas]].map(([who, each]) => h("span", { key: who, class: "cost" },
    h("b", null, plural(each.copies, "copy", "copies")), ` and ${
      plural(each.rebalances, "probing rebalance")}${each.rebalances ? ` (up to ${duration(each.seconds)})` : ""}`,
    h("span", { class: "quiet" }, ` by ${who}${each.estimated ? ", estimated" : ""}`)));
}

/** Count movements by kind: at once, by a warm-up, or later, without a free warm-up. */
function counted(movements) {
  const number = (...kinds) => movements.filter((move) => kinds.includes(move.kind)).length;
  const [warmups, waiting, swaps] = [number("warmup"), number("waiting"), number("swap")];
  const rest = movements.length - warmups - waiting - swaps;
  return [rest > 0 && `${count(rest)} at once`, swaps > 0 && plural(swaps, "swap"), warmups > 0 && plural(warmups, "warm-up"),
    waiting > 0 && `${count(waiting)} waiting for max.warmup.replicas`].filter(Boolean).join(", ");
}

/** Explanations of how a config is known; other words need none. */
const KNOWN = { told: "by the settings", read: "by the members" };

/** Return a config's values, milliseconds as a duration, too. */
const values = ({ name, values: said }) => (name.endsWith(".ms") && /^\d+$/.test(said) && Number(said) >= 1000
  ? `${said} (${duration(Number(said) / 1000)})` : said);

/** Describe each config, and how it is known; null if there are none. */
export function configs(app) {
  return app.configs?.length > 0 && h("div", { key: "configs" }, h("dt", null, "Configs"), h("dd", null,
    app.configs.map((one) => h("span", { key: one.name, class: "cost" },
      h("b", null, one.name), ` ${values(one)}`,
      h("span", { class: "quiet", title: one.would_tell && `what would narrow it down: ${one.would_tell}` }, `, ${KNOWN[one.known] ?? one.known}`)))));
}

/** Describe the facts as a list of terms. */
export function facts(app, nowMs) {
  const { probing, exact, recommendation } = app;
  const said = [];
  const due = next(probing, nowMs);
  if (due) {
    said.push([word(`${due.what} rebalance`, `Next ${due.what} rebalance`), h("b", { class: due.late ? "bad" : null }, due.when),
      probing.carried_by && `, triggered by ${probing.carried_by}`,
      probing.worthwhile_now && h("b", { class: "ok" }, ", worthwhile now"),
      probing.why && h("span", { class: "why" }, probing.why)]);
  } else if (probing && !app.by_coordinator) {
    said.push([word("probing rebalance", "Next probing rebalance"), "none scheduled"]);
  }
  const { spark, own, silent_since_ms: silent } = app.rates ?? {};
  if (spark || own || known(silent)) {
    said.push(["Rates of copies", [spark && `${count(spark)} measured by Spark`, own && `${count(own)} measured by caughtup`]
      .filter(Boolean).join(", ") || "none known",
      known(silent) && h("span", { class: "why" }, `Spark reports no more rates; the last one came ${ago(silent, nowMs)}`)]);
  }
  if (exact) {
    const [kind, sign, meaning] = styleOf("decisions", exact.result);
    said.push([word(exact.result, "The leader decided"), h("b", { class: kind }, `${sign} ${meaning}`),
      exact.assignor && h("span", { class: "quiet" }, ` (${exact.assignor})`),
      exact.why && h("span", { class: "why" }, exact.why)]);
    if (exact.told) said.push(["The leader says", h("span", { class: "why" }, exact.told)]);
  }
  if (app.change) said.push(changeFact(app.change, nowMs));
  if (recommendation) {
    const wanted = recommendation.probing_rebalance;
    const { pending } = indexed(app);
    const done = recommendation.movements.length > 0 && "every recommended movement is done";
    said.push([word("recommended", "Recommended"), pending.length ? plural(pending.length, "movement") : "nothing to move",
      h("span", { class: "why" }, pending.length ? counted(pending) : done || wanted?.reason)]);
    const until = pending.length && costs(recommendation);
    if (until) said.push(["Until balanced", until]);
    const inferred = recommendation.inputs?.inferred ?? [];
    if (inferred.length) said.push(["Inferred, not known", inferred.join("; ")]);
    const contradicted = recommendation.inputs?.contradicted ?? [];
    if (contradicted.length) said.push(["Wrong in the settings", contradicted.join("; ")]);
  }
  return said.map(([term, ...says], at) => h("div", { key: at }, h("dt", null, term), h("dd", null, says)));
}
