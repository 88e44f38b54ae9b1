"""A generation decided again, from what its leader may have remembered, and compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from caughtup.models.connect.decision import Decision, Delayed
from caughtup.models.connect.eager import decide_eager
from caughtup.models.connect.generation import ConnectGeneration
from caughtup.models.connect.incremental import decide_incremental
from caughtup.models.connect.round import NO_MEMORY
from caughtup.models.connect.watching.remembered import Hypothesis, Remembered, assumed, distinct
from caughtup.models.connect.watching.told import (
    assigned,
    differences,
    revoked,
    seen_configuration,
    sentence,
)
from caughtup.models.wire.connect_protocol import EAGER

Result = Literal["match", "mismatch", "undetermined"]
RESULTS: tuple[Result, ...] = ("match", "mismatch", "undetermined")

#: A leader decides so long (ms) before, or after, its coordinator writes down that it has.
_CLOCKS_APART_MS = 5_000
_NO_CONFIGURATION = "the worker cluster's configuration isn't known"


@dataclass(frozen=True, slots=True)
class Again:
    """What deciding a generation again came to.

    ``why`` says what differs, or what isn't known; "" for a match. ``decision`` is the one that
    matches, None without. ``remembered`` is what the leader may remember after the generation,
    None under the eager protocol, which remembers nothing.
    """

    result: Result
    why: str
    decision: Decision | None
    remembered: Remembered | None


def decide_again(
    generation: ConnectGeneration, connectors: Mapping[str, int] | None, before: Remembered
) -> Again:
    """Decide a generation again from a configuration, None if unknown, and what was remembered."""
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
            return Again("match", "", decision, None)
        if connectors is None:
            return Again("undetermined", _NO_CONFIGURATION, None, None)
        return Again("mismatch", sentence(found), None, None)
    survivors: list[Hypothesis] = []
    decided: Decision | None = None
    closest: list[str] | None = None
    for hypothesis in _with_told_delay(generation, before):
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
        return Again("mismatch", sentence(closest or []), None, after_all)
    told = before.max_delay_told or decided.delayed is Delayed.DEPARTED
    settled = "" if not decided.delay_ms else before.unknown
    return Again(
        "match", "", decided, Remembered(distinct(tuple(survivors)), settled, max_delay_told=told)
    )


def _unread(generation: ConnectGeneration) -> str:
    """Explain why nothing can be compared, "" if it can."""
    if generation.skipped:
        return f"a worker can't be read: {generation.skipped[0]}"
    if any(worker.told is None for worker in generation.workers.values()):
        return "its leader sent a worker no assignment"
    return ""


def _open(
    generation: ConnectGeneration, connectors: Mapping[str, int], before: Remembered, why: str
) -> Again:
    if generation.protocol == EAGER:
        return Again("undetermined", why, None, None)
    return Again("undetermined", why, None, assumed(generation, connectors, before, why))


def _config_mismatch(generation: ConnectGeneration, before: Remembered) -> Again:
    """Compare a round in which the leader had not read the configuration as far as some worker.

    It assigns nothing then, and has all join again.
    """
    leader = generation.workers.get(generation.leader or "")
    furthest = max(worker.said.config_offset for worker in generation.workers.values())
    after = before.not_completed()
    if assigned(generation) or revoked(generation):
        return Again("mismatch", "work was assigned beside an error", None, after)
    if leader is not None and leader.said.config_offset >= furthest:
        return Again("mismatch", "its leader had read all of the configuration", None, after)
    return Again("match", "", None, after)


def _with_told_delay(generation: ConnectGeneration, before: Remembered) -> Iterator[Hypothesis]:
    """Yield the hypotheses, then again with the delay that was told, or none, as the longest.

    Not of a leader whose longest delay is known: it told it when somebody left.
    """
    yield from before.hypotheses
    if before.max_delay_told:
        return
    known = {one.max_delay_ms for one in before.hypotheses}
    if generation.delay_ms not in known:
        for one in before.hypotheses:
            yield replace(one, max_delay_ms=generation.delay_ms)


def _times(generation: ConnectGeneration, hypothesis: Hypothesis) -> Iterator[int]:
    """Yield when the leader may have decided, in ms.

    The record says when its coordinator had it, which is a little later, by another clock; what is
    left of a delay tells it to the millisecond.
    """
    at_ms, ends_ms = generation.as_of_ms, hypothesis.memory.scheduled_rebalance_ms
    yield at_ms
    if hypothesis.memory == NO_MEMORY or ends_ms <= 0:
        return
    for time_ms in dict.fromkeys((ends_ms - generation.delay_ms, ends_ms)):
        if time_ms != at_ms and (at_ms < 0 or abs(time_ms - at_ms) <= _CLOCKS_APART_MS):
            yield time_ms
