"""A generation decided again from what its leader may have remembered, and compared with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from caughtup.models.connect.assignors import decide_eager, decide_incremental
from caughtup.models.connect.decision import NO_MEMORY, ConnectDecision, Delayed
from caughtup.models.connect.generation import (
    ConnectGeneration,
    assigned,
    revoked,
    seen_configuration,
    worker_id,
)
from caughtup.models.connect.watching.remembered import Hypothesis, Remembered, assumed, distinct
from caughtup.models.connect.work import Work, written
from caughtup.models.wire.connect_protocol import EAGER, NOTHING, ConnectorsAndTasks

Result = Literal["match", "mismatch", "undetermined"]
RESULTS: tuple[Result, ...] = ("match", "mismatch", "undetermined")

#: The most ms between a leader's decision and the time in its coordinator's record of it.
_CLOCKS_APART_MS = 5_000
#: The most differences that a reason names; the others are counted.
_NAMED = 3
#: The most characters of each difference in a reason.
_CHARACTERS = 200
_NO_CONFIGURATION = "the worker cluster's configuration isn't known"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A leader's decision compared with those made again from what it may have remembered.

    ``why`` names what differs or what is unknown, "" for a match. ``decision`` is the decision
    that matches, None without one. ``remembered`` is what the leader may remember after the
    generation, None under the eager protocol, whose leaders remember nothing.
    """

    result: Result
    why: str
    decision: ConnectDecision | None
    remembered: Remembered | None


def decide_again(
    generation: ConnectGeneration, connectors: Mapping[str, int] | None, before: Remembered
) -> Comparison:
    """Compare a generation with decisions from a configuration (None: unknown) and memories."""
    configured = dict(connectors) if connectors is not None else seen_configuration(generation)
    unread = _unread(generation)
    if unread:
        return _open(generation, configured, before, unread)
    if generation.error:
        return _config_mismatch(generation, before)
    unknown = before.unknown or (_NO_CONFIGURATION if connectors is None else "")
    if generation.protocol == EAGER:
        decision = decide_eager(generation.round(configured, generation.as_of_ms))
        found = differences(generation, decision)
        if not found:
            return Comparison("match", "", decision, None)
        if connectors is None:
            return Comparison("undetermined", _NO_CONFIGURATION, None, None)
        return Comparison("mismatch", sentence(found), None, None)
    survivors: list[Hypothesis] = []
    decided: ConnectDecision | None = None
    closest: list[str] | None = None
    for hypothesis in _with_announced_delay(generation, before):
        for time_ms in _times(generation, hypothesis):
            round_ = generation.round(configured, time_ms, last_completed=hypothesis.last_completed)
            decision, after = decide_incremental(round_, hypothesis.memory, hypothesis.max_delay_ms)
            found = differences(generation, decision)
            if not found:
                decided = decided or decision
                survivors.append(Hypothesis(after, hypothesis.max_delay_ms))
                break
            if closest is None or len(found) < len(closest):
                closest = found
    if decided is None:
        if unknown:
            return _open(generation, configured, before, unknown)
        after_all = assumed(generation, configured, before, "its last generation was a mismatch")
        return Comparison("mismatch", sentence(closest or []), None, after_all)
    known = before.max_delay_known or decided.delayed is Delayed.DEPARTED
    settled = "" if not decided.delay_ms else before.unknown
    return Comparison(
        "match", "", decided, Remembered(distinct(tuple(survivors)), settled, max_delay_known=known)
    )


def _unread(generation: ConnectGeneration) -> str:
    """Return why the generation cannot be compared, "" if it can."""
    if generation.skipped:
        return f"a worker can't be read: {generation.skipped[0]}"
    if any(worker.assignment is None for worker in generation.workers.values()):
        return "its leader sent a worker no assignment"
    return ""


def _open(
    generation: ConnectGeneration, connectors: Mapping[str, int], before: Remembered, why: str
) -> Comparison:
    if generation.protocol == EAGER:
        return Comparison("undetermined", why, None, None)
    return Comparison("undetermined", why, None, assumed(generation, connectors, before, why))


def _config_mismatch(generation: ConnectGeneration, before: Remembered) -> Comparison:
    """Compare a round whose leader had not read the config topic as far as some worker.

    Such a leader assigns nothing, and has all workers join again.
    """
    leader = generation.workers.get(generation.leader or "")
    furthest = max(worker.state.config_offset for worker in generation.workers.values())
    after = before.not_completed()
    if assigned(generation) or revoked(generation):
        return Comparison(
            "mismatch",
            "the leader assigned or revoked work although it reported an error",
            None,
            after,
        )
    if leader is not None and leader.state.config_offset >= furthest:
        return Comparison(
            "mismatch",
            "its leader reported a config mismatch although it had read all of the config topic",
            None,
            after,
        )
    return Comparison("match", "", None, after)


def _with_announced_delay(
    generation: ConnectGeneration, before: Remembered
) -> Iterator[Hypothesis]:
    """Yield the hypotheses, then again with the announced delay (or 0) as the longest.

    A leader whose longest delay is known has none of the latter: it announced that delay when a
    worker left.
    """
    yield from before.hypotheses
    if before.max_delay_known:
        return
    known = {one.max_delay_ms for one in before.hypotheses}
    if generation.delay_ms not in known:
        for one in before.hypotheses:
            yield replace(one, max_delay_ms=generation.delay_ms)


def _times(generation: ConnectGeneration, hypothesis: Hypothesis) -> Iterator[int]:
    """Yield the times (ms) at which the leader may have decided.

    The record has the time at which the coordinator got the decision, a little later and by
    another clock; during a delay, the rest of it gives the leader's time to the millisecond.
    """
    at_ms, ends_ms = generation.as_of_ms, hypothesis.memory.scheduled_rebalance_ms
    yield at_ms
    if hypothesis.memory == NO_MEMORY or ends_ms <= 0:
        return
    for time_ms in dict.fromkeys((ends_ms - generation.delay_ms, ends_ms)):
        if time_ms != at_ms and (at_ms < 0 or abs(time_ms - at_ms) <= _CLOCKS_APART_MS):
            yield time_ms


def differences(generation: ConnectGeneration, decision: ConnectDecision) -> list[str]:
    """Return in order how the assignments differ from a decision; nothing if they do not."""
    return list(_differences(generation, decision))


def _differences(generation: ConnectGeneration, decision: ConnectDecision) -> Iterator[str]:
    if generation.delay_ms != decision.delay_ms:
        yield f"the leader announced a delay of {generation.delay_ms} ms, not {decision.delay_ms}"
    eager = generation.protocol == EAGER
    for name in sorted(generation.workers):
        worker, decided = generation.workers[name], decision.workers[name]
        if worker.assignment is None:
            yield f"{worker_id(worker)} got no assignment"
            continue
        revoked_work = NOTHING if eager else worker.assignment.revoked
        for verb, sent, would in (
            ("start", worker.assignment.assigned, decided.assigned),
            ("stop", revoked_work, decided.revoked),
        ):
            if Work.of([sent]) != Work.of([would]):
                yield f"the leader told {worker_id(worker)} to {verb} {_named(sent)}, not {_named(would)}"


def sentence(found: list[str]) -> str:
    """Return a sentence that names the first differences and counts the others."""
    more = f", and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return "; ".join(one[:_CHARACTERS] for one in found[:_NAMED]) + more


def _named(work: ConnectorsAndTasks) -> str:
    return ", ".join(written(work)) or "nothing"
