"""A recommendation as the fields of its record, written and read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from caughtup.models.assignment.compact import read_compact, scenario_fields
from caughtup.models.assignment.decision import ClientDecision
from caughtup.models.decisions.exact.generation import ExactResult
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.decisions.inputs.known_configs import KnownConfig
from caughtup.models.decisions.plan_cost import PlanCost
from caughtup.models.decisions.recommendation import (
    PlannedMovement,
    ProbingRebalance,
    Recommendation,
)
from caughtup.models.errors import CaughtupError
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import ProcessId, TaskId

SCHEMA = 1


def recommendation_fields(one: Recommendation) -> dict[str, Any]:
    """Write a record of ``caughtup-recommended-assignments``, as JSON's own values."""
    return {
        **_identity_fields(one),
        "assignment": {
            str(process): {
                "active": [str(t) for t in given.active],
                "standby": [str(t) for t in given.standby],
                "warmup": [str(t) for t in given.warmup],
            }
            for process, given in sorted(one.assignment.items())
        },
        **_plan_fields(one),
        "inputs": {"scenario": scenario_fields(one.inputs.scenario), **inputs_fields(one)},
        **_left_out(one),
    }


def summary_fields(one: Recommendation) -> dict[str, Any]:
    """Write all of a record but the assignment and the inputs, which are long."""
    return {**_identity_fields(one), **_plan_fields(one), **_left_out(one)}


def _identity_fields(one: Recommendation) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "decision_id": one.decision_id,
        "cluster": one.cluster,
        "group": one.group,
        "generation": one.generation,
        "as_of_ms": one.as_of_ms,
        "process_ids": [str(process) for process in one.process_ids],
        "assignor": one.assignor,
        "decided_at_ms": one.decided_at_ms,
    }


def _plan_fields(one: Recommendation) -> dict[str, Any]:
    leader = one.leader
    return {
        "movements": [movement_fields(movement) for movement in one.movements],
        "probing_rebalance": _without_none(one.probing._asdict()),
        "cost": _cost_fields(one.cost),
        "kafka_cost": _cost_fields(one.kafka_cost),
        "leader": {
            "assignor": leader.assignor,
            "identical": {"match": True, "mismatch": False}.get(leader.result, "unknown"),
            "result": leader.result,
            "why": leader.why,
            **({"told": leader.told} if leader.told else {}),
        },
    }


def _left_out(one: Recommendation) -> dict[str, Any]:
    return {"left_out": list(one.left_out)} if one.left_out else {}


def inputs_fields(one: Recommendation) -> dict[str, Any]:
    """Write a record's inputs but the scenario."""
    inputs = one.inputs
    return {
        "end_offset_sums": {
            str(task): None if bound is None else [bound.low, bound.high]
            for task, bound in inputs.ends.items()
        },
        "offset_sums": "reported",
        **({} if one.end_offsets is None else {"end_offsets": one.end_offsets}),
        "changelogs": inputs.changelogs_from,
        "inferred": list(inputs.inferred),
        "assumed": list(inputs.assumed),
        "unknown": list(inputs.unknown),
        "contradicted": list(inputs.contradicted),
        **({"configs": config_fields(inputs.configs)} if inputs.configs else {}),
        "projected": inputs.projected,
        **({} if one.rates is None else {"rates": one.rates}),
    }


def config_fields(configs: Iterable[KnownConfig]) -> list[dict[str, Any]]:
    """Write what is known of configs as it stands in a record."""
    return [
        {
            "name": one.name,
            "values": one.text,
            "value": one.value,
            "provenance": one.provenance,
            **({"generations": one.generations} if one.generations else {}),
            **({"would_tell": one.would_tell} if one.would_tell else {}),
        }
        for one in configs
    ]


def movement_fields(movement: PlannedMovement) -> dict[str, Any]:
    """Write a movement as it stands in a record."""
    return {
        "task": movement.task,
        "to": movement.to,
        **({} if movement.source is None else {"from": movement.source}),
        "kind": movement.kind,
        "reason": movement.reason,
        **({} if movement.lag is None else {"lag": movement.lag}),
    }


def _cost_fields(cost: PlanCost) -> dict[str, Any]:
    return _without_none(cost._asdict())


def _without_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def read_recommendation(record: Mapping[str, Any]) -> Recommendation:
    """Read a record, as decoded from JSON.

    Raises CaughtupError ``bad_recommendation`` when it doesn't have what we write, or what is wrong
    with its scenario.
    """
    try:
        given, leader = record["inputs"], record["leader"]
        _check_texts({"told": "", **leader}, "assignor", "result", "why", "told")
        inputs = GenerationInputs(
            scenario=read_compact(given["scenario"]),
            ends={
                TaskId.parse(task): None if bound is None else _bound(*bound)
                for task, bound in given["end_offset_sums"].items()
            },
            unknown=tuple(given["unknown"]),
            inferred=tuple(given["inferred"]),
            assumed=tuple(given["assumed"]),
            changelogs_from=given["changelogs"],
            projected=given.get("projected", False) is True,
            contradicted=tuple(given.get("contradicted", ())),
            configs=tuple(map(_config, given.get("configs", ()))),
        )
        return Recommendation(
            decision_id=record["decision_id"],
            cluster=record["cluster"],
            group=record["group"],
            generation=record["generation"],
            as_of_ms=record["as_of_ms"],
            process_ids=tuple(map(ProcessId.parse, record["process_ids"])),
            assignor=record["assignor"],
            decided_at_ms=record["decided_at_ms"],
            assignment={
                ProcessId.parse(process): ClientDecision(
                    *(tuple(map(TaskId.parse, tasks[role])) for role in _ROLES)
                )
                for process, tasks in record["assignment"].items()
            },
            movements=tuple(map(_movement, record["movements"])),
            probing=_probing(record["probing_rebalance"]),
            cost=_cost(record["cost"]),
            kafka_cost=_cost(record["kafka_cost"]),
            leader=ExactResult(
                leader["result"], leader["why"], None, leader["assignor"], leader.get("told", "")
            ),
            inputs=inputs,
            end_offsets=given.get("end_offsets"),
            rates=given.get("rates"),
            left_out=tuple(record.get("left_out", ())),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise CaughtupError("bad_recommendation", f"not a recommendation: {error!r}") from None


_ROLES = ("active", "standby", "warmup")


def _config(fields: Mapping[str, Any]) -> KnownConfig:
    _check_texts({"would_tell": "", **fields}, "name", "values", "provenance", "would_tell")
    return KnownConfig(
        fields["name"],
        fields["values"],
        fields["value"],
        fields["provenance"],
        fields.get("generations", 0),
        fields.get("would_tell", ""),
    )


def _movement(fields: Mapping[str, Any]) -> PlannedMovement:
    _check_texts(fields, "task", "to", "kind", "reason")
    return PlannedMovement(
        fields["task"],
        fields.get("from"),
        fields["to"],
        fields["kind"],
        fields["reason"],
        fields.get("lag"),
    )


def _probing(fields: Mapping[str, Any]) -> ProbingRebalance:
    _check_texts(fields, "reason")
    return ProbingRebalance(
        fields["needed"], fields["reason"], fields.get("due_ms"), fields.get("worthwhile_at_ms")
    )


def _cost(fields: Mapping[str, Any]) -> PlanCost:
    return PlanCost(
        fields["copies"],
        fields.get("offsets"),
        fields["rebalances"],
        fields["seconds"],
        fields["estimated"],
    )


def _bound(low: object, high: object) -> EndOffsetSum:
    if not isinstance(low, int) or not isinstance(high, int):
        raise TypeError("an end offset sum is not a number")
    return EndOffsetSum(low, high)


def _check_texts(owner: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if not isinstance(owner[name], str):
            raise TypeError(f"{name} is not a string")
