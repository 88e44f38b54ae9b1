"""Hypotheses of what a Connect leader remembers, which no record has, from its generations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from caughtup.models.assignors.java.strings import in_hash_map_order
from caughtup.models.connect.assignors import revocation_backoff_ms
from caughtup.models.connect.decision import (
    MAX_DELAY_MS,
    NO_MEMORY,
    Memory,
    WorkerDecision,
    owned_after,
)
from caughtup.models.connect.generation import ConnectGeneration, active, assigned, revoked
from caughtup.models.connect.work import Configured, Work

#: The most hypotheses that are kept; later rounds show which of them holds.
MOST_HYPOTHESES = 24
#: The most rounds in a row that wanted to revoke; after more, the delay is the longest anyway.
_MOST_REVOCATIONS = 4


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """What a leader may remember, and its ``scheduled.rebalance.max.delay.ms``."""

    memory: Memory
    max_delay_ms: int = MAX_DELAY_MS
    last_completed: bool = True


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a leader may remember after a generation that it led.

    ``unknown`` is why the leader's memory may be none of the hypotheses, "" if it is one.
    ``max_delay_known`` is whether a leader has announced the longest delay, as when a worker left.
    """

    hypotheses: tuple[Hypothesis, ...]
    unknown: str = ""
    max_delay_known: bool = False

    def not_completed(self) -> Remembered:
        """Return the same for a leader whose last round failed, or after another one led."""
        hypotheses = tuple(replace(one, last_completed=False) for one in self.hypotheses)
        return replace(self, hypotheses=hypotheses)

    def either(self, other: Remembered, unknown: str = "") -> Remembered:
        """Return the union of both; ``unknown`` counts if neither has a reason."""
        return Remembered(
            distinct((*self.hypotheses, *other.hypotheses)),
            self.unknown or other.unknown or unknown,
            self.max_delay_known or other.max_delay_known,
        )


def fresh(before: Remembered | None, unknown: str = "") -> Remembered:
    """Return the memory of a worker that never led, with the longest delays of earlier leaders."""
    if before is None:
        return Remembered((Hypothesis(NO_MEMORY),), unknown)
    delays = dict.fromkeys(one.max_delay_ms for one in before.hypotheses)
    return Remembered(
        tuple(Hypothesis(NO_MEMORY, delay) for delay in delays), unknown, before.max_delay_known
    )


def distinct(hypotheses: tuple[Hypothesis, ...]) -> tuple[Hypothesis, ...]:
    """Return each hypothesis once, in order, at most ``MOST_HYPOTHESES``."""
    return tuple(dict.fromkeys(hypotheses))[:MOST_HYPOTHESES]


def assumed(
    generation: ConnectGeneration,
    connectors: Mapping[str, int],
    before: Remembered,
    unknown: str,
) -> Remembered:
    """Return what a leader may remember after a generation that no hypothesis explains.

    What it assigned and revoked is in the record; what is configured and not run, it remembers as
    lost. Its count of revocations and the start of its delay show only in its next rounds.
    """
    configured = Configured(connectors)
    runs, started, gone = active(generation), assigned(generation), revoked(generation)
    known = runs | started
    lost = Work.of([configured.missing(known, configured.foreign(known))])
    delay_ms = generation.delay_ms
    memory = Memory(
        assigned=(runs - gone) | started | lost,
        revoked=gone,
        members=frozenset(generation.workers),
        candidates=tuple(_without_work(generation)) if delay_ms else (),
        scheduled_rebalance_ms=max(generation.as_of_ms, 0) + delay_ms if delay_ms else 0,
        delay_ms=delay_ms,
    )
    known_delays = dict.fromkeys(one.max_delay_ms for one in before.hypotheses)
    longest = [delay for delay in known_delays if delay >= delay_ms]
    if not before.max_delay_known or not longest:
        longest = [
            *dict.fromkeys((*longest, max(delay_ms, MAX_DELAY_MS), delay_ms or MAX_DELAY_MS))
        ]
    taken = gone - configured.foreign(gone)
    hypotheses = (
        Hypothesis(replace(memory, revoked_last=last, successive_revocations=times), delay)
        for delay in longest
        for last, times in _revocations(delay_ms, delay, lost=bool(lost), taken=bool(taken))
    )
    return Remembered(
        distinct(tuple(hypotheses)), unknown if delay_ms else "", before.max_delay_known
    )


def _revocations(
    delay_ms: int, max_delay_ms: int, *, lost: bool, taken: bool
) -> Iterator[tuple[bool, int]]:
    """Yield whether the round revoked for balance, and how many in a row wanted to."""
    rounds = range(_MOST_REVOCATIONS + 1)
    if not delay_ms:
        if taken:
            yield from ((True, times) for times in rounds)
        yield False, 0
        return
    if not lost:
        for times in rounds[1:]:
            if revocation_backoff_ms(times, max_delay_ms) == delay_ms:
                yield True, times
    yield from ((False, times) for times in rounds)


def _without_work(generation: ConnectGeneration) -> list[str]:
    """Return the members that ran nothing, or had all revoked, in the leader's order."""
    empty = []
    for name in in_hash_map_order(generation.workers, maps=2):
        worker = generation.workers[name]
        sent = worker.assignment
        stopped = WorkerDecision() if sent is None else WorkerDecision(revoked=sent.revoked)
        if not owned_after(worker.state.owned, stopped):
            empty.append(name)
    return list(in_hash_map_order(empty))
