"""A recommendation: a decision with its reasons, its cost and the inputs it came from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from caughtup.models.assignment.compact import CompactScenario, scenario_fields
from caughtup.models.assignment.decision import ClientDecision, Decision, Movement
from caughtup.models.assignors.registry import decide
from caughtup.models.decisions.exact.generation import ASSIGNOR, KAFKAS, ExactResult
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.decisions.plan_cost import PlanCost, plan_cost
from caughtup.models.durations import counted
from caughtup.models.errors import ScenarioError
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import ProcessId


class PlannedMovement(NamedTuple):
    """A task that is to move ``to`` a process, ids as their text, and why.

    ``source`` is None where nobody has it. ``lag`` is the destination's in offsets, None where it
    isn't known or the task has no state.
    """

    task: str
    source: str | None
    to: str
    kind: str
    reason: str
    lag: int | None


def planned_movements(movements: Iterable[Movement]) -> tuple[PlannedMovement, ...]:
    """Return an assignor's movements as they are published."""
    return tuple(
        PlannedMovement(
            str(one.task),
            None if one.source is None else str(one.source),
            str(one.destination),
            one.kind,
            one.reason,
            one.lag if one.lag is not None and one.lag >= 0 else None,
        )
        for one in movements
    )


class ProbingRebalance(NamedTuple):
    """Whether a probing rebalance is needed, when the next is due, and when it is worthwhile (ms)."""

    needed: bool
    reason: str
    due_ms: int | None = None
    worthwhile_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What is recommended for a generation of a group, and all that it was decided from.

    It holds for the processes in ``process_ids`` only, as of ``as_of_ms``. ``leader`` says how
    exact mode fared, without the leader's decision. ``end_offsets``: ``measured``, ``bounded`` or
    ``unknown``, and ``rates`` where the pace is from that ``probing`` goes by, each None where it
    wasn't told. ``left_out`` names the parts of a large one that are missing.
    """

    decision_id: str
    cluster: str
    group: str
    generation: int
    as_of_ms: int
    process_ids: tuple[ProcessId, ...]
    assignor: str
    decided_at_ms: int
    assignment: Mapping[ProcessId, ClientDecision]
    movements: tuple[PlannedMovement, ...]
    probing: ProbingRebalance
    cost: PlanCost
    kafka_cost: PlanCost
    leader: ExactResult
    inputs: GenerationInputs
    end_offsets: str | None = None
    rates: str | None = None
    left_out: tuple[str, ...] = ()


def recommendation(
    cluster: str,
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    exact: ExactResult,
    decided_at_ms: int,
    worthwhile_at_ms: int | None = None,
    rates: str | None = None,
) -> Recommendation | None:
    """Decide what to recommend; None when nothing can be decided from these inputs.

    ``worthwhile_at_ms``: from when on a probing rebalance would promote something, by ``rates``
    from there; None where no copy's pace was known. Whoever applies it ignores it once the
    generation or the processes are others.
    """
    try:
        scenario = inputs.scenario.expanded()
        decision = decide(scenario)
    except ScenarioError:
        return None
    kafkas = replace(scenario, assignor=KAFKAS)
    by_kafka = exact.decision if exact.assignor == ASSIGNOR and not inputs.projected else None
    return Recommendation(
        decision_id=decision_id(cluster, inputs.scenario),
        cluster=cluster,
        group=generation.group,
        generation=generation.generation,
        as_of_ms=generation.as_of_ms,
        process_ids=tuple(generation.clients),
        assignor=inputs.scenario.assignor,
        decided_at_ms=decided_at_ms,
        assignment=decision.clients,
        movements=planned_movements(decision.movements),
        probing=_probing(generation, decision, worthwhile_at_ms),
        cost=plan_cost(scenario, decision),
        kafka_cost=plan_cost(kafkas, by_kafka or decide(kafkas)),
        leader=replace(exact, decision=None),
        inputs=inputs,
        end_offsets=_end_offsets_from(inputs),
        rates=rates,
    )


def decision_id(cluster: str, scenario: CompactScenario) -> str:
    """Digest what a decision was made from: the same inputs give the same id."""
    return digest([cluster, scenario_fields(scenario)])


def digest(value: Any) -> str:
    """Digest JSON's own values, whatever the order of their keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _probing(
    generation: StreamsGeneration, decision: Decision, worthwhile_at_ms: int | None
) -> ProbingRebalance:
    due, needed = generation.next_rebalance(), decision.probing_rebalance_needed
    return ProbingRebalance(
        needed,
        _probing_reason(decision),
        None if due is None else due[0],
        worthwhile_at_ms if needed else None,
    )


def _probing_reason(decision: Decision) -> str:
    if not decision.probing_rebalance_needed:
        return "every task is where it should be: no rebalance is needed to look again"
    warming = [m for m in decision.movements if m.kind == "warmup"]
    waiting = [m for m in decision.movements if m.kind == "waiting"]
    parts = []
    if warming:
        parts.append(f"{counted(len(warming), 'warm-up')} to be checked again")
    if waiting:
        parts.append(f"{counted(len(waiting), 'movement')} beyond max.warmup.replicas")
    return " and ".join(parts) or "copies changed places in this generation"


def _end_offsets_from(inputs: GenerationInputs) -> str:
    if any(bound is None for bound in inputs.ends.values()):
        return "unknown"
    exactly = all(bound is not None and bound.low == bound.high for bound in inputs.ends.values())
    return "measured" if exactly else "bounded"
