"""What a leader may remember from one round to the next, as far as generations show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from caughtup.models.assignors.java.strings import in_hash_map_order
from caughtup.models.connect.backoff import revocation_backoff_ms
from caughtup.models.connect.configured import Configured
from caughtup.models.connect.decision import WorkerDecision
from caughtup.models.connect.generation import ConnectGeneration
from caughtup.models.connect.round import MAX_DELAY_MS, NO_MEMORY, Memory
from caughtup.models.connect.watching.told import active, assigned, revoked
from caughtup.models.connect.work import Work
from caughtup.models.connect.worker import owned_after

#: How many are kept: what tells them apart comes with the next rounds.
MOST_HYPOTHESES = 24
#: Rounds that wanted to take work away, one after another: beyond, the delay is the longest anyway.
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

    ``unknown`` says why what it does remember may not be among the hypotheses, "" if it is.
    ``max_delay_told``: a leader told the longest delay itself, when somebody left.
    """

    hypotheses: tuple[Hypothesis, ...]
    unknown: str = ""
    max_delay_told: bool = False

    def not_completed(self) -> Remembered:
        """Return what it remembers if its last round wasn't completed, or another led since."""
        hypotheses = tuple(replace(one, last_completed=False) for one in self.hypotheses)
        return replace(self, hypotheses=hypotheses)

    def either(self, other: Remembered, unknown: str = "") -> Remembered:
        """Return what is remembered if one of both is."""
        return Remembered(
            distinct((*self.hypotheses, *other.hypotheses)),
            self.unknown or other.unknown or unknown,
            self.max_delay_told or other.max_delay_told,
        )


def fresh(before: Remembered | None, unknown: str = "") -> Remembered:
    """Return what a leader remembers that never led; the longest delay is as leaders before had it."""
    if before is None:
        return Remembered((Hypothesis(NO_MEMORY),), unknown)
    delays = dict.fromkeys(one.max_delay_ms for one in before.hypotheses)
    return Remembered(
        tuple(Hypothesis(NO_MEMORY, delay) for delay in delays), unknown, before.max_delay_told
    )


def distinct(hypotheses: tuple[Hypothesis, ...]) -> tuple[Hypothesis, ...]:
    """Return each hypothesis once, in order, no more than are kept."""
    return tuple(dict.fromkeys(hypotheses))[:MOST_HYPOTHESES]


def assumed(
    generation: ConnectGeneration,
    connectors: Mapping[str, int],
    before: Remembered,
    unknown: str,
) -> Remembered:
    """Return what a leader may remember after a generation that nothing known before it explains.

    What it assigned and took away is told; what is configured and nobody has, it remembers as lost.
    What it counted, and since when it waits, is told only by what it does next.
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
    if not before.max_delay_told or not longest:
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
        distinct(tuple(hypotheses)), unknown if delay_ms else "", before.max_delay_told
    )


def _revocations(
    delay_ms: int, max_delay_ms: int, *, lost: bool, taken: bool
) -> Iterator[tuple[bool, int]]:
    """Yield whether the round took work away for balance, or wanted to, and how often in a row."""
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
    """Name who ran nothing, or was told to stop all that it ran, in the leader's order."""
    empty = []
    for name in in_hash_map_order(generation.workers, maps=2):
        worker = generation.workers[name]
        told = worker.told
        stopped = WorkerDecision() if told is None else WorkerDecision(revoked=told.revoked)
        if not owned_after(worker.said.owned, stopped):
            empty.append(name)
    return list(in_hash_map_order(empty))
