"""A Connect group's generations, decided again from nothing but what the logs have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from caughtup.demo.connect.group_log import LoggedGeneration
from caughtup.models.connect.assignors import decide_incremental
from caughtup.models.connect.decision import NO_MEMORY, ConnectDecision, Memory
from caughtup.models.connect.generation import ConnectGeneration
from caughtup.models.connect.work import written
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks

#: Returns the number of tasks of each connector, for a reader of the config topic up to an offset.
ConfiguredBefore = Callable[[int], Mapping[str, int]]
_ComparedRound = tuple[Mapping[str, tuple[list[str], list[str]]], int]


class DecidedAgain(NamedTuple):
    """A generation compared with our decision; ``differs`` is empty if they are equal."""

    logged: LoggedGeneration
    differs: str

    @property
    def match(self) -> bool:
        """Whether our decision is the leader's."""
        return not self.differs


def decide_again(
    generations: Sequence[LoggedGeneration], configured: ConfiguredBefore, max_delay_ms: int
) -> Iterator[DecidedAgain]:
    """Decide each generation with its leader's memory, and compare with the leader's decision.

    The time of the decision is not in the log. It is after the change of the group's state, and not
    after the record was written. During a delay, it follows from the remaining delay.
    """
    memories: dict[str, Memory] = {}
    slack_ms, last = 0, None
    for logged in generations:
        generation = logged.generation
        leader = generation.leader or ""
        memory = memories.get(leader, NO_MEMORY)
        slack_ms = max(slack_ms, logged.written_ms - generation.as_of_ms)
        connectors = configured(_config_offset(generation))
        decided: list[tuple[ConnectDecision, Memory]] = []
        for time_ms in _times(logged, memory, slack_ms):
            # A round that its leader gave up (it had not read the configuration), or that was never
            # completed, is only a gap in the log.
            round_ = generation.round(connectors, time_ms, last_completed=last == logged.number - 1)
            decided.append(decide_incremental(round_, memory, max_delay_ms))
            if _decided(decided[-1][0]) == _recorded(generation):
                break
        decision, memories[leader] = decided[-1]
        last = logged.number
        yield DecidedAgain(logged, _difference(decision, generation))


def _times(logged: LoggedGeneration, memory: Memory, slack_ms: int) -> Iterator[int]:
    """Yield the times (ms) at which the leader may have decided; it runs on this machine."""
    since, until = logged.generation.as_of_ms, logged.written_ms
    if memory.scheduled_rebalance_ms and logged.generation.delay_ms:
        at_ms = memory.scheduled_rebalance_ms - logged.generation.delay_ms
        if since - slack_ms <= at_ms <= until + slack_ms:
            yield at_ms
    yield since
    yield until
    yield until + slack_ms


def _config_offset(generation: ConnectGeneration) -> int:
    return max(
        one.assignment.config_offset for one in generation.workers.values() if one.assignment
    )


def _recorded(generation: ConnectGeneration) -> _ComparedRound:
    told = {name: one.assignment for name, one in generation.workers.items() if one.assignment}
    return {n: _both(one.assigned, one.revoked) for n, one in told.items()}, generation.delay_ms


def _decided(decision: ConnectDecision) -> _ComparedRound:
    workers = decision.workers.items()
    return {n: _both(one.assigned, one.revoked) for n, one in workers}, decision.delay_ms


def _both(assigned: ConnectorsAndTasks, revoked: ConnectorsAndTasks) -> tuple[list[str], list[str]]:
    return written(assigned), written(revoked)


def _difference(decision: ConnectDecision, generation: ConnectGeneration) -> str:
    ours, theirs = _decided(decision), _recorded(generation)
    if ours == theirs:
        return ""
    return f"decided again: {ours}; the leader sent: {theirs}"
