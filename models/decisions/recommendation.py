"""Recommendations for generations: computed, encoded as records, and read back.

A recommendation is its record (``records/recommendations.py``). The record's inputs are
``GenerationInputs`` with ids as text, because the models calculate with typed ids.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from caughtup.models.assignment.compact import CompactScenario, read_compact, scenario_record
from caughtup.models.assignment.decision import Decision, Movement
from caughtup.models.assignors.registry import decide
from caughtup.models.decisions.exact.comparison import ASSIGNOR, KAFKAS, ExactResult
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.decisions.rebalancing_cost import plan_cost
from caughtup.models.durations import counted
from caughtup.models.errors import CaughtupError, ScenarioError
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import TaskId
from caughtup.models.records.decoding import (
    BAD_TYPE,
    RefusedError,
    require_agreement,
    require_past,
)
from caughtup.models.records.fields import ABSENT, changed, json_values, or_absent, or_none
from caughtup.models.records.keys import decode_group
from caughtup.models.records.recommendations import (
    FORMAT,
    InputsRecord,
    ProbingRecord,
    RecommendationRecord,
    RecommendedMovement,
    RecommendedTasks,
)
from caughtup.models.records.topics import MOST_RECOMMENDATION_BYTES

#: The longest record that is written, in bytes: half of what a follower reads.
MOST_WRITTEN_BYTES = MOST_RECOMMENDATION_BYTES // 2


def recommendation(
    cluster: str,
    generation: StreamsGeneration,
    inputs: GenerationInputs,
    exact: ExactResult,
    decided_at_ms: int,
    worthwhile_at_ms: int | None = None,
    rates: str | None = None,
) -> RecommendationRecord | None:
    """Return the recommendation for a generation; None if no decision is possible from its inputs.

    ``worthwhile_at_ms``: from when on a probing rebalance would promote a copy, None if no copy's
    rate is known; ``rates``: the source of the rates.
    """
    try:
        scenario = inputs.scenario.expanded()
        decision = decide(scenario)
    except ScenarioError:
        return None
    kafkas = replace(scenario, assignor=KAFKAS)
    is_kafkas = exact.leader.assignor == ASSIGNOR and not inputs.projected
    by_kafka = exact.decision if is_kafkas else None
    return RecommendationRecord(
        schema=FORMAT.schema,
        decision_id=decision_id(cluster, inputs.scenario),
        cluster=cluster,
        group=generation.group,
        generation=generation.generation,
        as_of_ms=generation.as_of_ms,
        process_ids=[str(process) for process in generation.clients],
        assignor=inputs.scenario.assignor,
        decided_at_ms=decided_at_ms,
        assignment={
            str(process): RecommendedTasks(
                *([str(t) for t in tasks] for tasks in (given.active, given.standby, given.warmup))
            )
            for process, given in sorted(decision.clients.items())
        },
        movements=_marked(planned_movements(decision.movements), inputs),
        probing_rebalance=_probing(generation, decision, worthwhile_at_ms),
        cost=plan_cost(scenario, decision),
        kafka_cost=plan_cost(kafkas, by_kafka or decide(kafkas)),
        leader=exact.leader,
        inputs=_inputs_record(inputs, rates),
    )


def planned_movements(movements: Iterable[Movement]) -> list[RecommendedMovement]:
    """Return an assignor's movements as records."""
    return [
        RecommendedMovement(
            task=str(one.task),
            to=str(one.destination),
            from_=ABSENT if one.source is None else str(one.source),
            kind=one.kind,
            reason=one.reason,
            lag=one.lag if one.lag is not None and one.lag >= 0 else ABSENT,
        )
        for one in movements
    ]


def _marked(
    movements: list[RecommendedMovement], inputs: GenerationInputs
) -> list[RecommendedMovement]:
    """Mark the movements to copies that are caught up by some end offsets within their bounds.

    The scenario's lags are by the greatest ones, so that no copy counts as caught up that may not
    be.
    """
    limit = inputs.scenario.acceptable_recovery_lag
    for one in movements:
        bound = inputs.ends.get(TaskId.parse(one.task))
        lag = or_none(one.lag)
        if bound is None or lag is None or inputs.projected:
            continue
        width = bound.high - bound.low
        if lag - width <= limit < lag:
            one.may_be_caught_up = True
            one.reason += (
                f"; it may be caught up already, since its end offset is known within {width:,}"
            )
    return movements


def decision_id(cluster: str, scenario: CompactScenario) -> str:
    """Return the id of a decision, a digest of its inputs."""
    return digest([cluster, json_values(scenario_record(scenario))])


def digest(value: object) -> str:
    """Return a digest of a JSON value that doesn't depend on the order of keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _probing(
    generation: StreamsGeneration, decision: Decision, worthwhile_at_ms: int | None
) -> ProbingRecord:
    due, needed = generation.next_rebalance(), decision.probing_rebalance_needed
    return ProbingRecord(
        needed,
        _probing_reason(decision),
        ABSENT if due is None else due[0],
        or_absent(worthwhile_at_ms) if needed else ABSENT,
    )


def _probing_reason(decision: Decision) -> str:
    if not decision.probing_rebalance_needed:
        return "every task is where it should be, so no further rebalance is needed"
    warming = [m for m in decision.movements if m.kind == "warmup"]
    waiting = [m for m in decision.movements if m.kind == "waiting"]
    parts = []
    if warming:
        parts.append(f"{counted(len(warming), 'warm-up has', 'warm-ups have')} to be checked again")
    if waiting:
        parts.append(
            f"{counted(len(waiting), 'movement waits', 'movements wait')} for max.warmup.replicas"
        )
    return " and ".join(parts) or "an active and a standby change places in this generation"


def _inputs_record(inputs: GenerationInputs, rates: str | None) -> InputsRecord:
    return InputsRecord(
        scenario=scenario_record(inputs.scenario),
        end_offset_sums={
            str(task): None if bound is None else [bound.low, bound.high]
            for task, bound in inputs.ends.items()
        },
        offset_sums="reported",
        end_offsets=_end_offsets_from(inputs),
        changelogs=inputs.changelogs_from,
        inferred=list(inputs.inferred),
        assumed=list(inputs.assumed),
        unknown=list(inputs.unknown),
        contradicted=list(inputs.contradicted),
        configs=list(inputs.configs) or ABSENT,
        projected=inputs.projected,
        rates=or_absent(rates),
    )


def _end_offsets_from(inputs: GenerationInputs) -> str:
    if any(bound is None for bound in inputs.ends.values()):
        return "unknown"
    exactly = all(bound is not None and bound.low == bound.high for bound in inputs.ends.values())
    return "measured" if exactly else "bounded"


def recorded_inputs(record: InputsRecord) -> GenerationInputs:
    """Return the inputs of a recommendation with typed ids; raises ScenarioError.

    The scenario is read as ``caughtup assign`` reads it.
    """
    return GenerationInputs(
        scenario=read_compact(json_values(record.scenario)),
        ends={
            TaskId.parse(task): None if bound is None else EndOffsetSum(*bound)
            for task, bound in record.end_offset_sums.items()
        },
        unknown=tuple(record.unknown),
        inferred=tuple(record.inferred),
        assumed=tuple(record.assumed),
        changelogs_from=record.changelogs,
        projected=or_none(record.projected) is True,
        contradicted=tuple(or_none(record.contradicted) or ()),
        configs=tuple(or_none(record.configs) or ()),
    )


def read_recommendation(
    key: bytes | None, value: bytes | None, clock_ms: int
) -> tuple[str, RecommendationRecord | None]:
    """Return the group and the recommendation of a record, None for a tombstone.

    ``clock_ms`` is the present time by our clock. Raises RefusedError.
    """
    group = decode_group(key)
    if value is None:
        return group, None
    record = FORMAT.decode(value)
    require_agreement(group, record.group)
    require_past(max(record.as_of_ms, record.decided_at_ms), clock_ms)
    try:
        inputs = recorded_inputs(record.inputs)
        if not record.left_out:
            inputs.scenario.expanded()
    except ScenarioError as error:
        raise RefusedError(BAD_TYPE, f"inputs.scenario: {error.message}") from None
    return group, record


def encode_recommendation(
    recommended: RecommendationRecord, most_bytes: int = MOST_WRITTEN_BYTES
) -> bytes:
    """Return the encoded record, without its largest parts as far as necessary.

    Raises CaughtupError ``too_large`` if that doesn't suffice.
    """
    value = b""
    for lighter in lighter_recommendations(recommended):
        value = FORMAT.encode(lighter)
        if len(value) <= most_bytes:
            return value
    raise CaughtupError("too_large", f"{len(value)} bytes, of {most_bytes} at most")


def lighter_recommendations(whole: RecommendationRecord) -> Iterator[RecommendationRecord]:
    """Yield a recommendation, then without one more part each time.

    ``left_out`` names the missing parts; without lags the decision can't be made again. The parts
    that a follower reads stay: the assignment, previous owners, configs, and the next rebalance.
    """
    yield whole
    lighter = whole
    for name, leave_out in _PARTS.items():
        left_out = [*(or_none(lighter.left_out) or ()), name]
        lighter = changed(leave_out(lighter), left_out=left_out)
        yield lighter


def _without_lags(one: RecommendationRecord) -> RecommendationRecord:
    scenario = one.inputs.scenario
    clients = {process: changed(client, lags={}) for process, client in scenario.clients.items()}
    lighter = changed(scenario, greatest_lags={}, clients=clients)
    return changed(one, inputs=changed(one.inputs, scenario=lighter))


def _without_partitions(one: RecommendationRecord) -> RecommendationRecord:
    scenario = one.inputs.scenario
    tasks = {
        task: changed(given, source_partitions=[], changelog_partitions=[])
        for task, given in scenario.tasks.items()
    }
    return changed(one, inputs=changed(one.inputs, scenario=changed(scenario, tasks=tasks)))


def _without_end_offset_sums(one: RecommendationRecord) -> RecommendationRecord:
    return changed(one, inputs=changed(one.inputs, end_offset_sums={}, unknown=[]))


def _without_reasons(one: RecommendationRecord) -> RecommendationRecord:
    return changed(one, movements=[changed(movement, reason="") for movement in one.movements])


def _without_movements(one: RecommendationRecord) -> RecommendationRecord:
    return changed(one, movements=[])


#: The parts that can be left out, by their names in ``left_out``, the largest first.
_PARTS: Mapping[str, Callable[[RecommendationRecord], RecommendationRecord]] = {
    "inputs.scenario.lags": _without_lags,
    "inputs.scenario.partitions": _without_partitions,
    "inputs.end_offset_sums": _without_end_offset_sums,
    "movements.reason": _without_reasons,
    "movements": _without_movements,
}
