"""The recommendation record: a decision with its reasons, its cost and the inputs it came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from caughtup.models.assignment.compact import read_compact, scenario_fields
from caughtup.models.assignment.decision import Decision, Movement
from caughtup.models.assignors.registry import decide
from caughtup.models.decisions.exact.generation import ASSIGNOR, KAFKAS, ExactResult
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.decisions.plan_cost import plan_cost
from caughtup.models.errors import CaughtupError, ScenarioError
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import TaskId

SCHEMA = 1


def recommendation(
    cluster: str,
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    exact: ExactResult,
    decided_at_ms: int,
    worthwhile_at_ms: int | None = None,
    rates: str | None = None,
) -> dict[str, Any] | None:
    """Decide what to recommend, and write the record of ``caughtup-recommended-assignments``.

    ``worthwhile_at_ms``: from when on a probing rebalance would promote something, by ``rates``
    from there; None where no copy's pace was known. Gives None when
    nothing can be decided from these inputs. Whoever applies it ignores it once the generation or
    the processes are others.
    """
    try:
        scenario = inputs.scenario.expanded()
        decision = decide(scenario)
    except ScenarioError:
        return None
    due = generation.next_rebalance()
    probing: dict[str, Any] = {
        "needed": decision.probing_rebalance_needed,
        "reason": _probing_reason(decision),
    }
    if due is not None:
        probing["due_ms"] = due[0]
    if worthwhile_at_ms is not None and decision.probing_rebalance_needed:
        probing["worthwhile_at_ms"] = worthwhile_at_ms
    kafkas = replace(scenario, assignor=KAFKAS)
    written = scenario_fields(inputs.scenario)
    by_kafka = exact.decision if exact.assignor == ASSIGNOR and not inputs.projected else None
    return {
        "schema": SCHEMA,
        "decision_id": decision_id(cluster, written),
        "cluster": cluster,
        "group": generation.group,
        "generation": generation.generation,
        "as_of_ms": generation.as_of_ms,
        "process_ids": [str(process) for process in generation.clients],
        "assignor": inputs.scenario.assignor,
        "decided_at_ms": decided_at_ms,
        "assignment": {
            str(process): {
                "active": [str(t) for t in given.active],
                "standby": [str(t) for t in given.standby],
                "warmup": [str(t) for t in given.warmup],
            }
            for process, given in sorted(decision.clients.items())
        },
        "movements": [movement_fields(m) for m in decision.movements],
        "probing_rebalance": probing,
        "cost": plan_cost(scenario, decision),
        "kafka_cost": plan_cost(kafkas, by_kafka or decide(kafkas)),
        "leader": {
            "assignor": exact.assignor,
            "identical": {"match": True, "mismatch": False}.get(exact.result, "unknown"),
            "result": exact.result,
            "why": exact.why,
            **({"told": exact.told} if exact.told else {}),
        },
        "inputs": {
            "scenario": written,
            "end_offset_sums": {
                str(task): None if bound is None else [bound.low, bound.high]
                for task, bound in inputs.ends.items()
            },
            "offset_sums": "reported",
            "end_offsets": _end_offsets_from(inputs),
            "changelogs": inputs.changelogs_from,
            "inferred": list(inputs.inferred),
            "assumed": list(inputs.assumed),
            "unknown": list(inputs.unknown),
            "contradicted": list(inputs.contradicted),
            "projected": inputs.projected,
            **({} if rates is None else {"rates": rates}),
        },
    }


def read_recommendation(record: Mapping[str, Any]) -> tuple[GenerationInputs, ExactResult]:
    """Read back what a record was decided from and how exact mode fared.

    Raises CaughtupError ``bad_recommendation`` when it doesn't have what we write.
    """
    try:
        given, leader = record["inputs"], record["leader"]
        assignor = leader["assignor"]
        projected = given.get("projected", False) is True
        scenario = read_compact(given["scenario"])
        # From a projected scenario, from one that isn't whole, and for a follower, nobody can tell
        # what the leader decided.
        decision = None
        if assignor == ASSIGNOR and not projected and not record.get("left_out"):
            decision = decide(replace(scenario.expanded(), assignor=KAFKAS))
        inputs = GenerationInputs(
            scenario=scenario,
            ends={
                TaskId.parse(task): None if bound is None else _bound(*bound)
                for task, bound in given["end_offset_sums"].items()
            },
            unknown=tuple(given["unknown"]),
            inferred=tuple(given["inferred"]),
            assumed=tuple(given["assumed"]),
            changelogs_from=given["changelogs"],
            projected=projected,
            contradicted=tuple(given.get("contradicted", ())),
        )
        _check_texts({"told": "", **leader}, "assignor", "result", "why", "told")
        for movement in record["movements"]:
            _check_texts(movement, "task", "to", "kind", "reason")
        _check_texts(record["probing_rebalance"], "reason")
        told = leader.get("told", "")
        return inputs, ExactResult(leader["result"], leader["why"], decision, assignor, told)
    except (KeyError, TypeError, AttributeError) as error:
        raise CaughtupError("bad_recommendation", f"not a recommendation: {error!r}") from None


def _bound(low: object, high: object) -> EndOffsetSum:
    if not isinstance(low, int) or not isinstance(high, int):
        raise TypeError("an end offset sum is not a number")
    return EndOffsetSum(low, high)


def _check_texts(owner: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if not isinstance(owner[name], str):
            raise TypeError(f"{name} is not a string")


def decision_id(cluster: str, scenario: Mapping[str, Any]) -> str:
    """Digest what a decision was made from: the same inputs give the same id."""
    text = json.dumps([cluster, scenario], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def movement_fields(movement: Movement) -> dict[str, Any]:
    """Write a movement as it stands in a record."""
    record: dict[str, Any] = {"task": str(movement.task), "to": str(movement.destination)}
    if movement.source is not None:
        record["from"] = str(movement.source)
    record |= {"kind": movement.kind, "reason": movement.reason}
    if movement.lag is not None and movement.lag >= 0:
        record["lag"] = movement.lag
    return record


def _probing_reason(decision: Decision) -> str:
    if not decision.probing_rebalance_needed:
        return "every task is where it should be: no rebalance is needed to look again"
    warming = [m for m in decision.movements if m.kind == "warmup"]
    waiting = [m for m in decision.movements if m.kind == "waiting"]
    parts = []
    if warming:
        parts.append(f"{len(warming)} warm-up{'s' * (len(warming) > 1)} to be looked at again")
    if waiting:
        parts.append(f"{len(waiting)} movement{'s' * (len(waiting) > 1)} beyond the budget")
    return " and ".join(parts) or "copies changed places in this generation"


def _end_offsets_from(inputs: GenerationInputs) -> str:
    if any(bound is None for bound in inputs.ends.values()):
        return "unknown"
    exactly = all(bound is not None and bound.low == bound.high for bound in inputs.ends.values())
    return "measured" if exactly else "bounded"
