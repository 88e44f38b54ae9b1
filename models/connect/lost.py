"""What becomes of work that nobody runs any more: it waits for who left, or is dealt again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from caughtup.models.assignors.java.strings import in_hash_map_order
from caughtup.models.connect.decision import Assigned, Delayed
from caughtup.models.connect.loads import WorkerLoad, deal_in_turn
from caughtup.models.connect.round import Memory
from caughtup.models.connect.work import Work
from caughtup.models.wire.connect_protocol import NOTHING, ConnectorsAndTasks


class LostWork(NamedTuple):
    """What was decided of lost work.

    ``deal`` is to be dealt as new work is; what goes to candidates has been dealt. ``because`` is
    why either is assigned now, None where it waits, and ``delayed`` why it does.
    """

    memory: Memory
    deal: ConnectorsAndTasks = NOTHING
    because: Assigned | None = None
    delayed: Delayed | None = None


def handle_lost(
    lost: Work, loads: Sequence[WorkerLoad], memory: Memory, now_ms: int, max_delay_ms: int
) -> LostWork:
    """Decide whether lost work waits, and deal it to candidates once its delay is over.

    A round that took work away for balance comes here though nothing is lost, and a delay begins
    if a worker left. Source: Connect's ``handleLostAssignments``.
    """
    if not lost and not memory.revoked_last:
        return LostWork(_without_delay(memory))
    delayed = memory.scheduled_rebalance_ms > 0
    if not delayed and memory.members <= {load.name for load in loads}:
        return LostWork(memory, lost.in_order(), Assigned.NOT_RECEIVED)
    if max_delay_ms == 0:
        return LostWork(memory, lost.in_order(), Assigned.NO_DELAY)
    if delayed and now_ms >= memory.scheduled_rebalance_ms:
        return _after_the_delay(lost.in_order(), loads, memory)
    return _wait(loads, memory, now_ms, max_delay_ms)


def _after_the_delay(
    lost: ConnectorsAndTasks, loads: Sequence[WorkerLoad], memory: Memory
) -> LostWork:
    over = replace(_without_delay(memory), revoked_last=False)
    by_name = {load.name: load for load in loads}
    back = [by_name[name] for name in memory.candidates if name in by_name]
    if not back:
        return LostWork(over, lost, Assigned.DELAY_OVER)
    deal_in_turn(back, lost)
    return LostWork(over, because=Assigned.CAME_BACK)


def _wait(loads: Sequence[WorkerLoad], memory: Memory, now_ms: int, max_delay_ms: int) -> LostWork:
    # The leader collects them in a HashSet before it adds them to those of earlier rounds.
    empty = in_hash_map_order(load.name for load in loads if load.is_empty)
    left_ms = memory.scheduled_rebalance_ms - now_ms
    delay_ms = min(left_ms, max_delay_ms) if left_ms > 0 else max_delay_ms
    waiting = replace(
        memory,
        candidates=tuple(dict.fromkeys((*memory.candidates, *empty))),
        delay_ms=delay_ms,
        scheduled_rebalance_ms=now_ms + delay_ms,
    )
    return LostWork(waiting, delayed=Delayed.WAITING if left_ms > 0 else Delayed.DEPARTED)


def _without_delay(memory: Memory) -> Memory:
    return replace(memory, candidates=(), scheduled_rebalance_ms=0, delay_ms=0)
