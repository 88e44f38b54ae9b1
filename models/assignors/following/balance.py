"""How a follower balances an application after too long without a recommendation."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from caughtup.models.assignors.following.placement import (
    ClientStates,
    Placement,
    keep_actives,
    per_thread,
)
from caughtup.models.ids import ProcessId, TaskId

#: All lags above this count as equal.
_MOST = 1 << 61


class BalanceStep(NamedTuple):
    """A balanced placement or a step towards it, and how many tasks wait for a hand-over."""

    placement: Placement
    waiting: int


def balance_step(states: ClientStates) -> BalanceStep:
    """Return the next step towards balance, starting from the present assignment.

    Caught-up tasks are handed over and the others get warm-ups. Tasks move one by one from the most
    to the least loaded process, per thread, until no move helps; those come first for which the
    destination lags least compared with the other processes. At most ``max.warmup.replicas`` copies
    exist beyond ``num.standby.replicas``.
    """
    active = keep_actives(states)
    stateful = {task: process for task, process in active.items() if task in states.stateful}
    target = dict(stateful)
    loads = _loads(states, stateful)
    _level_loads(states, target, loads)
    warming: list[TaskId] = []
    for task, destination in target.items():
        if destination == active[task]:
            continue
        nowhere = not states.owners[task]
        if states.caught_up(destination, task) or (nowhere and destination in states.may_run(task)):
            active[task] = destination
        else:
            warming.append(task)
    stateless = {task: process for task, process in active.items() if task not in states.stateful}
    _level_loads(states, stateless, _loads(states, active))
    active |= stateless
    standby = _standbys(states, active)
    budget = states.scenario.configs.max_warmup_replicas
    for task in sorted(warming, key=lambda task: (states.rank(target[task], task), task)):
        if budget and task not in standby[target[task]]:
            standby[target[task]].add(task)
            budget -= 1
    return BalanceStep(Placement(active, standby), len(warming))


def _loads(states: ClientStates, active: dict[TaskId, ProcessId]) -> dict[ProcessId, int]:
    loads = dict.fromkeys(states.clients, 0)
    for process in active.values():
        loads[process] += 1
    return loads


def _level_loads(
    states: ClientStates, movable: dict[TaskId, ProcessId], loads: dict[ProcessId, int]
) -> None:
    """Move tasks, in place, until the most loaded process with a movable task has none to spare."""
    clients = states.clients
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
            queues[source, destination] = _in_order(states, having[source], source, destination)
        # Moves to other destinations may have taken tasks since they were sorted. None was added:
        # the destination has the least load with one more, so it is never a source in this pass.
        task = next(one for one in queues[source, destination] if one in having[source])
        having[source].remove(task)
        having[destination].add(task)
        movable[task] = destination
        loads[source] -= 1
        loads[destination] += 1


def _in_order(
    states: ClientStates, tasks: set[TaskId], source: ProcessId, destination: ProcessId
) -> Iterator[TaskId]:
    """Sort tasks: those come first for which the destination lags least compared with others."""

    def order(task: TaskId) -> tuple[int, int, TaskId]:
        rank = _rank(states, destination, task)
        # At least one of the three nearest is neither the source nor the destination.
        nearest = heapq.nsmallest(3, states.clients, key=lambda p: _rank(states, p, task))
        elsewhere = [_rank(states, p, task) for p in nearest if p not in (source, destination)]
        return min(_MOST, rank) - min([_MOST, *elsewhere]), rank, task

    return iter(sorted(tasks, key=order))


def _rank(states: ClientStates, process: ProcessId, task: TaskId) -> int:
    return states.rank(process, task) if task in states.stateful else 0


def _standbys(
    states: ClientStates, active: dict[TaskId, ProcessId]
) -> dict[ProcessId, set[TaskId]]:
    """Return the standbys: those that exist are kept, missing ones are built.

    A process that hands a task over has its state, and so is a standby at once. A new one is built
    where most of the state is, or else on the process with the fewest copies per thread.
    """
    wanted = states.scenario.configs.num_standby_replicas
    standby: dict[ProcessId, set[TaskId]] = {process: set() for process in states.clients}
    for task in states.scenario.stateful:
        holders = (
            process
            for process, client in states.clients.items()
            if process != active[task]
            and (task in client.previous_standby or task in client.previous_active)
        )
        for process in states.by_rank(holders, task)[:wanted]:
            standby[process].add(task)
    copies = _loads(states, active)
    for process, tasks in standby.items():
        copies[process] += len(tasks)
    for task in states.scenario.stateful:
        free = {
            process
            for process in states.clients
            if process != active[task] and task not in standby[process]
        }
        missing = wanted - (len(states.clients) - 1 - len(free))
        while free and missing > 0:
            chosen = min(
                free,
                key=lambda process: (
                    states.rank(process, task),
                    per_thread(states.clients[process], copies[process]),
                    process,
                ),
            )
            standby[chosen].add(task)
            copies[chosen] += 1
            free.remove(chosen)
            missing -= 1
    return standby
