"""Where the tasks of an application are, and where a follower keeps or moves them while it waits."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from caughtup.models.assignment.scenario import Client, Scenario
from caughtup.models.ids import ProcessId, TaskId

RUNNING, UNKNOWN = -2, -3
_FARTHEST = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Placement:
    """Each task's active process, and each process's standbys, warm-ups included."""

    active: dict[TaskId, ProcessId]
    standby: dict[ProcessId, set[TaskId]]

    def extra_copies(self, num_standby_replicas: int) -> int:
        """Return the number of copies beyond ``num.standby.replicas``, which are warm-ups."""
        counts: dict[TaskId, int] = {}
        for tasks in self.standby.values():
            for task in tasks:
                counts[task] = counts.get(task, 0) + 1
        return sum(max(0, count - num_standby_replicas) for count in counts.values())


class ClientStates:
    """The states of all of a scenario's clients: owners, ranks by lag, and who is caught up."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.clients: Mapping[ProcessId, Client] = {c.process_id: c for c in scenario.clients}
        self.stateful = frozenset(scenario.stateful)
        self.tasks: tuple[TaskId, ...] = tuple(sorted((*scenario.stateful, *scenario.stateless)))
        owners: dict[TaskId, list[ProcessId]] = {task: [] for task in self.tasks}
        for client in scenario.clients:
            for task in client.previous_active:
                if task in owners:
                    owners[task].append(client.process_id)
        #: The processes that ran each task; an empty list while the task is in transit.
        self.owners: Mapping[TaskId, list[ProcessId]] = owners

    def rank(self, process: ProcessId, task: TaskId) -> int:
        """Return a process's rank by its lag: running first, an unknown lag last."""
        lag = self.clients[process].lags.get(task, UNKNOWN)
        return _FARTHEST if lag == UNKNOWN else lag

    def caught_up(self, process: ProcessId, task: TaskId) -> bool:
        """Return whether a process may take a task over. Source: HighAvailabilityTaskAssignor."""
        lag = self.clients[process].lags.get(task, UNKNOWN)
        acceptable = self.scenario.configs.acceptable_recovery_lag
        return lag == RUNNING or acceptable == _FARTHEST or 0 <= lag <= acceptable

    def may_run(self, task: TaskId) -> list[ProcessId]:
        """Return the processes that may run a task: the caught-up ones, or else the nearest."""
        if task not in self.stateful:
            return list(self.clients)
        caught_up = [process for process in self.clients if self.caught_up(process, task)]
        if caught_up:
            return caught_up
        least = min(self.rank(process, task) for process in self.clients)
        return [process for process in self.clients if self.rank(process, task) == least]

    def is_empty(self, process: ProcessId, task: TaskId) -> bool:
        """Return whether a copy lags as much as a process without any state of the task."""
        rank = self.rank(process, task)
        return rank != _FARTHEST and any(
            self.rank(other, task) <= rank
            for other, client in self.clients.items()
            if task not in client.previous_active and task not in client.previous_standby
        )

    def by_rank(self, processes: Iterable[ProcessId], task: TaskId) -> list[ProcessId]:
        """Sort processes by their lag, then by their id."""
        return sorted(processes, key=lambda process: (self.rank(process, task), process))


def per_thread(client: Client, tasks: int) -> Fraction:
    """Return the load per thread of a client that has this number of tasks."""
    return Fraction(tasks, client.capacity)


def in_place(states: ClientStates) -> Placement:
    """Return the placement in which everything stays where it is.

    A task without a process goes to the least loaded process that is caught up, or, if none is, to
    the one that lags least. Standbys stay as far as the configs have room for them, and at most
    ``max.warmup.replicas`` warm-ups, those of the least loaded processes first. Nothing new is
    built: a copy without any state doesn't stay, unless its process has so few tasks that the copy
    was begun so that the process can take a task over.
    """
    active = keep_actives(states)
    loads = Counter(process for task, process in active.items() if task in states.stateful)
    configs = states.scenario.configs
    standby: dict[ProcessId, set[TaskId]] = {process: set() for process in states.clients}
    # A former owner's copy is caught up and no longer needed: first come the copies that are built
    # on processes with few tasks.
    warmups: list[tuple[Fraction, int, TaskId, int, ProcessId]] = []
    for task in states.scenario.stateful:
        holders = states.by_rank(
            (
                process
                for process, client in states.clients.items()
                if task in client.previous_standby and process != active[task]
            ),
            task,
        )
        for index, process in enumerate(holders):
            if index < configs.num_standby_replicas:
                standby[process].add(task)
                continue
            client, owner = states.clients[process], active[task]
            with_it = per_thread(client, loads[process] + 1)
            takes_over = with_it <= per_thread(states.clients[owner], loads[owner])
            if takes_over or not states.is_empty(process, task):
                load = per_thread(client, loads[process])
                warmups.append((load, states.rank(process, task), task, index, process))
    for _, _, task, _, process in sorted(warmups)[: configs.max_warmup_replicas]:
        standby[process].add(task)
    return Placement(active, standby)


def keep_actives(states: ClientStates) -> dict[TaskId, ProcessId]:
    """Keep each active with its owner; a task without a process goes to one that may run it."""
    active: dict[TaskId, ProcessId] = {}
    loads = dict.fromkeys(states.clients, 0)
    for task, owners in states.owners.items():
        if owners:
            # After a session timed out, two processes can report the task; the nearer one keeps it.
            active[task] = states.by_rank(owners, task)[0]
            loads[active[task]] += 1
    for task, owners in states.owners.items():
        if not owners:
            active[task] = min(
                states.may_run(task),
                key=lambda process: (
                    per_thread(states.clients[process], loads[process]),
                    process,
                ),
            )
            loads[active[task]] += 1
    return dict(sorted(active.items()))


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
    """Move tasks, in place, until the most loaded process can give no movable task away."""
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
