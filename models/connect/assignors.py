"""Both assignors of Connect, of Kafka 4.3.1: what a round assigns, revokes and delays.

EagerAssignor assigns all work in each round, to the workers in turn; IncrementalCooperativeAssignor
leaves work where it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import NamedTuple, TypeVar

from caughtup.models.assignors.java.strings import in_hash_map_order, utf16
from caughtup.models.connect.compared import Compared, compare
from caughtup.models.connect.decision import (
    MAX_DELAY_MS,
    Assigned,
    ConnectDecision,
    Delayed,
    Memory,
    Round,
    WorkerDecision,
)
from caughtup.models.connect.work import NO_WORK, Configured, Item, Work
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import NOTHING, ConnectorsAndTasks

T = TypeVar("T", str, ConnectorTaskId)


class WorkerLoad:
    """A worker's connectors and tasks, in its order; newly assigned ones come last."""

    __slots__ = ("connectors", "kept_connectors", "kept_tasks", "name", "tasks")

    def __init__(self, name: str, owned: ConnectorsAndTasks, *, once: bool = False) -> None:
        """Begin with what the worker owns; ``once`` is whether it names each item once."""
        self.name = name
        self.connectors = list(owned.connectors if once else dict.fromkeys(owned.connectors))
        self.tasks = list(owned.tasks if once else dict.fromkeys(owned.tasks))
        self.kept_connectors = len(self.connectors)
        self.kept_tasks = len(self.tasks)

    @property
    def is_empty(self) -> bool:
        """Whether the worker runs nothing."""
        return not self.connectors and not self.tasks

    def remove(self, work: Work) -> None:
        """Remove what is in ``work``, newly assigned items included."""
        if not work:
            return
        kept = _but(self.connectors[: self.kept_connectors], work.connectors)
        self.connectors = kept + _but(self.connectors[self.kept_connectors :], work.connectors)
        self.kept_connectors = len(kept)
        kept_tasks = _but(self.tasks[: self.kept_tasks], work.tasks)
        self.tasks = kept_tasks + _but(self.tasks[self.kept_tasks :], work.tasks)
        self.kept_tasks = len(kept_tasks)

    @property
    def started(self) -> ConnectorsAndTasks:
        """What was newly assigned to the worker."""
        connectors = self.connectors[self.kept_connectors :]
        tasks = self.tasks[self.kept_tasks :]
        return (
            ConnectorsAndTasks(tuple(connectors), tuple(tasks)) if connectors or tasks else NOTHING
        )


def _but(items: list[T], gone: frozenset[T]) -> list[T]:
    return [item for item in items if item not in gone]


def assign_to_least_loaded(loads: Iterable[WorkerLoad], work: ConnectorsAndTasks) -> None:
    """Assign each connector, then each task, to the worker with the fewest of the kind, by name.

    Source: Connect's ``assignConnectors`` and ``assignTasks``.
    """
    by_name = sorted(loads, key=lambda load: utf16(load.name))
    by_connectors = sorted([load.connectors for load in by_name], key=len)
    counts = [len(connectors) for connectors in by_connectors]
    for connector, place in zip(work.connectors, _fewest_first(counts), strict=False):
        by_connectors[place].append(connector)
    by_tasks = sorted([load.tasks for load in by_name], key=len)
    counts = [len(tasks) for tasks in by_tasks]
    for task, place in zip(work.tasks, _fewest_first(counts), strict=False):
        by_tasks[place].append(task)


def assign_in_turn(workers: Sequence[WorkerLoad], work: ConnectorsAndTasks) -> None:
    """Assign connectors to workers in turn, then tasks, from the first worker again."""
    for connector, worker in zip(work.connectors, cycle(workers), strict=False):
        worker.connectors.append(connector)
    for task, worker in zip(work.tasks, cycle(workers), strict=False):
        worker.tasks.append(task)


def _fewest_first(counts: list[int]) -> Iterator[int]:
    """Yield for each item the place of the worker that gets it; ``counts`` ascend."""
    level, end = counts[0], 0
    while True:
        while end < len(counts) and counts[end] <= level:
            end += 1
        yield from range(end)
        level += 1


def decide_eager(round_: Round) -> ConnectDecision:
    """Return a round's decision: connectors, then tasks, to the workers in turn, by name.

    Workers stop all work before they join, so nothing is revoked. The round has a worker.
    Source: Connect's ``EagerAssignor``.
    """
    work = Configured(round_.connectors).missing(NO_WORK, NO_WORK)
    loads = {name: WorkerLoad(name, NOTHING) for name in sorted(round_.workers, key=utf16)}
    in_turn = cycle(loads.values())
    for connector, load in zip(work.connectors, in_turn, strict=False):
        load.connectors.append(connector)
    for task, load in zip(work.tasks, in_turn, strict=False):
        load.tasks.append(task)
    return ConnectDecision(
        delay_ms=0,
        delayed=None,
        workers={name: WorkerDecision(loads[name].started) for name in round_.workers},
        revoked_because={},
        again_because={},
        given_because=Assigned.EAGER,
    )


class LostWork(NamedTuple):
    """The decision on lost work.

    ``to_assign`` is to be assigned like new work; what candidates get is already assigned.
    ``because`` is why either is assigned now, None if it waits; ``delayed`` is why it waits.
    """

    memory: Memory
    to_assign: ConnectorsAndTasks = NOTHING
    because: Assigned | None = None
    delayed: Delayed | None = None


def handle_lost(
    lost: Work, loads: Sequence[WorkerLoad], memory: Memory, now_ms: int, max_delay_ms: int
) -> LostWork:
    """Decide whether lost work waits, and assign it to candidates once its delay is over.

    After a round that revoked work for balance this also runs without lost work, and begins a
    delay if a worker left. Source: Connect's ``handleLostAssignments``.
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
    assign_in_turn(back, lost)
    return LostWork(over, because=Assigned.CAME_BACK)


def _wait(loads: Sequence[WorkerLoad], memory: Memory, now_ms: int, max_delay_ms: int) -> LostWork:
    # The leader collects candidates in a HashSet before it adds them to earlier rounds' ones.
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


def beyond_their_shares(
    configured: Configured, loads: Sequence[WorkerLoad]
) -> Mapping[str, ConnectorsAndTasks]:
    """Return what each worker has beyond its share of the connectors, and of the tasks.

    Workers with nothing beyond it are left out. Where shares are uneven, the first workers in
    the order of ``loads`` keep one more. Source: ``performLoadBalancingRevocations``.
    """
    if not configured or all(load.is_empty for load in loads):
        return {}
    connectors = _beyond(len(configured.connectors), [load.connectors for load in loads])
    tasks = _beyond(configured.task_count, [load.tasks for load in loads])
    return {
        load.name: ConnectorsAndTasks(tuple(from_connectors), tuple(from_tasks))
        for load, from_connectors, from_tasks in zip(loads, connectors, tasks, strict=True)
        if from_connectors or from_tasks
    }


def _beyond(total: int, owned: Sequence[Sequence[T]]) -> list[Sequence[T]]:
    """Return the first items of each worker's list that exceed its share of the total."""
    share, extras = divmod(total, len(owned))
    beyond: list[Sequence[T]] = []
    for items in owned:
        allowed = share
        if len(items) <= share:
            beyond.append(())
            continue
        if extras:
            allowed += 1
            extras -= 1
        beyond.append(items[: len(items) - allowed])
    return beyond


_MULTIPLIER = 40


def revocation_backoff_ms(times: int, max_delay_ms: int) -> int:
    """Return the delay in ms after ``times`` revoking rounds in a row, counted from 1.

    The delay is 40^times ms, at most ``scheduled.rebalance.max.delay.ms``. Java computes the
    greatest exponent by logarithms, so the longest delay may come out 1 ms short: 999 of 1,000.
    For one delay in 14,000, and for no whole seconds up to eight hours, the last bit of a
    logarithm decides that; no language promises this bit, so the result may be 1 ms off.
    Source: Kafka's ``ExponentialBackoff``.
    """
    if max_delay_ms <= 1:
        return max_delay_ms
    greatest = math.log(max_delay_ms) / math.log(_MULTIPLIER)
    return min(int(math.pow(_MULTIPLIER, min(times, greatest))), max_delay_ms)


def decide_incremental(
    round_: Round, memory: Memory, max_delay_ms: int = MAX_DELAY_MS
) -> tuple[ConnectDecision, Memory]:
    """Return a round's decision, and what the leader remembers after it.

    ``max_delay_ms`` is the leader's ``scheduled.rebalance.max.delay.ms``. The round has a worker.
    Source: Connect's ``IncrementalCooperativeAssignor``.
    """
    work = compare(round_, memory)
    # The leader copies what workers sent from one HashMap into another.
    names = in_hash_map_order(round_.workers, maps=2)
    loads = [WorkerLoad(name, round_.workers[name], once=work.once) for name in names]
    for load in loads:
        load.remove(work.taken)
    lost = handle_lost(work.lost, loads, memory, round_.time_ms, max_delay_ms)
    after, delayed = lost.memory, lost.delayed
    revoked: Mapping[str, ConnectorsAndTasks] = {}
    postponed: Mapping[str, ConnectorsAndTasks] = {}
    if after.delay_ms:
        after = replace(after, revoked_last=False)
    else:
        beyond = beyond_their_shares(work.configured, loads)
        after = _balance(after, bool(beyond), round_.time_ms, max_delay_ms)
        if after.delay_ms:
            delayed, postponed = Delayed.BACK_OFF, beyond
        else:
            revoked = beyond
    for load in loads:
        if load.name in revoked:
            load.remove(Work.of([revoked[load.name]]))
    assign_to_least_loaded(loads, _joined(work.created, lost.to_assign))
    started = {load.name: load.started for load in loads}
    workers = {
        name: WorkerDecision(
            assigned=started[name],
            revoked=_joined(work.taken.within(owned), revoked.get(name, NOTHING)),
            postponed=postponed.get(name, NOTHING),
        )
        for name, owned in round_.workers.items()
    }
    gone = Work.of(one.revoked for one in workers.values())
    given = Work.of(started.values())
    after = replace(
        after,
        assigned=(work.active - gone) | given | work.lost,
        revoked=gone,
        members=frozenset(round_.workers),
    )
    decision = ConnectDecision(
        delay_ms=after.delay_ms,
        delayed=delayed,
        workers=workers,
        revoked_because=work.reasons_to_revoke(gone),
        again_because=_again(work.lost, lost.because),
        unassigned=_unassigned(work, gone, given),
        reassign_at_ms=after.scheduled_rebalance_ms if after.delay_ms else None,
        candidates=after.candidates,
    )
    return decision, after


def _balance(memory: Memory, uneven: bool, now_ms: int, max_delay_ms: int) -> Memory:
    """Return the memory after a round that revokes work for balance, or delays that."""
    if not uneven:
        if not memory.revoked_last:
            return memory
        return replace(memory, revoked_last=False, successive_revocations=0)
    if not memory.revoked_last:
        return replace(memory, revoked_last=True)
    times = memory.successive_revocations + 1
    delay_ms = revocation_backoff_ms(times, max_delay_ms)
    ends_ms = now_ms + delay_ms if delay_ms else memory.scheduled_rebalance_ms
    return replace(
        memory,
        successive_revocations=times,
        delay_ms=delay_ms,
        scheduled_rebalance_ms=ends_ms,
    )


def _again(lost: Work, because: Assigned | None) -> dict[Item, Assigned]:
    """Return why each lost connector and task is assigned now; nothing if they wait."""
    return dict.fromkeys((*lost.connectors, *lost.tasks), because) if because else {}


def _unassigned(work: Compared, gone: Work, given: Work) -> ConnectorsAndTasks:
    """Return what is configured, was lost or revoked, and is not assigned in this round."""
    free = (gone | work.lost) - given
    return (free - work.configured.foreign(free)).in_order()


def _joined(first: ConnectorsAndTasks, second: ConnectorsAndTasks) -> ConnectorsAndTasks:
    if not second:
        return first
    return ConnectorsAndTasks(first.connectors + second.connectors, first.tasks + second.tasks)
