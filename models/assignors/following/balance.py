"""How a follower balances an application once nobody has recommended anything for long enough."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from caughtup.models.assignors.following.placement import (
    Placement,
    Standing,
    keep_actives,
    per_thread,
)
from caughtup.models.ids import ProcessId, TaskId

#: Greater lags are alike.
_MOST = 1 << 61


class Step(NamedTuple):
    """A balanced placement or a step towards it, and how many tasks wait to be handed over."""

    placement: Placement
    waiting: int


def balance_step(standing: Standing) -> Step:
    """Balance from where everything is, handing over what is caught up and warming up the rest.

    Tasks go one by one from the most to the least loaded process, per thread, until none would
    gain, first those that the destination rather than others has. At most ``max.warmup.replicas`` copies are there beyond ``num.standby.replicas``.
    """
    active = keep_actives(standing)
    stateful = {task: process for task, process in active.items() if task in standing.stateful}
    target = dict(stateful)
    loads = _loads(standing, stateful)
    _level(standing, target, loads)
    warming: list[TaskId] = []
    for task, destination in target.items():
        if destination == active[task]:
            continue
        nowhere = not standing.owners[task]
        if standing.caught_up(destination, task) or (
            nowhere and destination in standing.may_run(task)
        ):
            active[task] = destination
        else:
            warming.append(task)
    stateless = {task: process for task, process in active.items() if task not in standing.stateful}
    _level(standing, stateless, _loads(standing, active))
    active |= stateless
    standby = _standbys(standing, active)
    budget = standing.scenario.configs.max_warmup_replicas
    for task in sorted(warming, key=lambda task: (standing.rank(target[task], task), task)):
        if budget and task not in standby[target[task]]:
            standby[target[task]].add(task)
            budget -= 1
    return Step(Placement(active, standby), len(warming))


def _loads(standing: Standing, active: dict[TaskId, ProcessId]) -> dict[ProcessId, int]:
    loads = dict.fromkeys(standing.clients, 0)
    for process in active.values():
        loads[process] += 1
    return loads


def _level(
    standing: Standing, movable: dict[TaskId, ProcessId], loads: dict[ProcessId, int]
) -> None:
    """Move tasks until the most loaded process with a movable one has none to spare."""
    clients = standing.clients
    queues: dict[tuple[ProcessId, ProcessId], Iterator[TaskId]] = {}
    having: dict[ProcessId, set[TaskId]] = {process: set() for process in clients}
    for task, process in movable.items():
        having[process].add(task)
    while any(having.values()):
        source = min(
            (process for process in clients if having[process]),
            key=lambda process: (-per_thread(clients[process], loads[process]), process),
        )
        destination = min(
            clients, key=lambda process: (per_thread(clients[process], loads[process] + 1), process)
        )
        if per_thread(clients[source], loads[source]) <= per_thread(
            clients[destination], loads[destination] + 1
        ):
            return
        if (source, destination) not in queues:
            queues[source, destination] = _in_order(standing, having[source], source, destination)
        # Others may have taken some since they were sorted. Nothing was added: who receives had
        # the least load with one more, so that it is never a source in the same pass.
        task = next(one for one in queues[source, destination] if one in having[source])
        having[source].remove(task)
        having[destination].add(task)
        movable[task] = destination
        loads[source] -= 1
        loads[destination] += 1


def _in_order(
    standing: Standing, tasks: set[TaskId], source: ProcessId, destination: ProcessId
) -> Iterator[TaskId]:
    """Sort tasks: first those for which the destination lags least, compared with others."""

    def order(task: TaskId) -> tuple[int, int, TaskId]:
        rank = _rank(standing, destination, task)
        # Of the three nearest one is neither.
        nearest = heapq.nsmallest(3, standing.clients, key=lambda p: _rank(standing, p, task))
        elsewhere = [_rank(standing, p, task) for p in nearest if p not in (source, destination)]
        return min(_MOST, rank) - min([_MOST, *elsewhere]), rank, task

    return iter(sorted(tasks, key=order))


def _rank(standing: Standing, process: ProcessId, task: TaskId) -> int:
    return standing.rank(process, task) if task in standing.stateful else 0


def _standbys(standing: Standing, active: dict[TaskId, ProcessId]) -> dict[ProcessId, set[TaskId]]:
    """Keep the standbys there are, and build those that are missing.

    Who hands a task over has its state and is a standby at once. A new one is built where most of
    the state is, else on the process with the fewest copies per thread.
    """
    wanted = standing.scenario.configs.num_standby_replicas
    standby: dict[ProcessId, set[TaskId]] = {process: set() for process in standing.clients}
    for task in standing.scenario.stateful:
        holders = (
            process
            for process, client in standing.clients.items()
            if process != active[task]
            and (task in client.previous_standby or task in client.previous_active)
        )
        for process in standing.by_rank(holders, task)[:wanted]:
            standby[process].add(task)
    copies = _loads(standing, active)
    for process, tasks in standby.items():
        copies[process] += len(tasks)
    for task in standing.scenario.stateful:
        free = {
            process
            for process in standing.clients
            if process != active[task] and task not in standby[process]
        }
        missing = wanted - (len(standing.clients) - 1 - len(free))
        while free and missing > 0:
            chosen = min(
                free,
                key=lambda process: (
                    standing.rank(process, task),
                    per_thread(standing.clients[process], copies[process]),
                    process,
                ),
            )
            standby[chosen].add(task)
            copies[chosen] += 1
            free.remove(chosen)
            missing -= 1
    return standby
