"""What no recommendation may do to an application, whoever wrote it: lose copies, heap up actives.

What ``minimal_movement`` recommends keeps to these by how it stages plans; on the way to balance
it leaves actives where they are, but gives nobody more than balance allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from caughtup.models.assignment.active_bound import most_actives
from caughtup.models.assignors.following.objection import Objection
from caughtup.models.assignors.following.placement import UNKNOWN, ClientStates, Placement
from caughtup.models.ids import ProcessId, TaskId


def find_broken_bound(states: ClientStates, placement: Placement) -> Objection | None:
    """Return the first bound that a placement of exactly the application's tasks breaks, or None.

    Each task has its standbys, as far as there are processes; of the copies that are caught up
    no more go than would be spare; and no process is given actives beyond ``most_actives``, save
    those that nobody with room can run. Source: ``caughtup.Bounds``.
    """
    return _standbys(states, placement) or _actives(states, placement)


def _standbys(states: ClientStates, placement: Placement) -> Objection | None:
    wanted = states.scenario.configs.num_standby_replicas
    least = min(wanted, len(states.clients) - 1)
    copies: dict[TaskId, list[ProcessId]] = {task: [] for task in states.stateful}
    for process, tasks in placement.standby.items():
        for task in tasks:
            copies[task].append(process)
    for task in states.scenario.stateful:
        standbys = copies[task]
        if len(standbys) < least:
            return Objection("too_few_standbys", f"task {task} has {len(standbys)} standbys")
        had = [
            process
            for process, client in states.clients.items()
            if task in client.previous_active or task in client.previous_standby
        ]
        ready = _ready(states, had, task)
        if _ready(states, (placement.active[task], *standbys), task) < min(ready, 1 + wanted):
            return Objection("loses_standby", f"it drops a caught-up copy of task {task}")
    return None


def _ready(states: ClientStates, processes: Iterable[ProcessId], task: TaskId) -> int:
    """Count the copies that are caught up; who ran a task is, even if its lag is unknown."""
    return sum(
        states.caught_up(process, task)
        or (
            task in states.clients[process].previous_active
            and states.clients[process].lags.get(task, UNKNOWN) == UNKNOWN
        )
        for process in processes
    )


def _actives(states: ClientStates, placement: Placement) -> Objection | None:
    """Check the bound of actives for processes that gain any, stateful and stateless apart."""
    threads = sum(client.capacity for client in states.clients.values())
    for tasks in (states.scenario.stateful, states.scenario.stateless):
        most = {
            process: most_actives(client.capacity, len(tasks), threads)
            for process, client in states.clients.items()
        }
        counts = Counter(placement.active[task] for task in tasks)
        room = frozenset(process for process in states.clients if counts[process] < most[process])
        for process in states.clients:
            if counts[process] <= most[process]:
                continue
            given = [
                task
                for task in tasks
                if placement.active[task] == process and process not in states.owners[task]
            ]
            needless = sum(_could_be_elsewhere(states, room, task) for task in given)
            if needless and counts[process] - (len(given) - needless) > most[process]:
                return Objection(
                    "too_many_actives",
                    f"it gives {process} more actives than {most[process]}: {counts[process]}",
                )
    return None


def _could_be_elsewhere(states: ClientStates, room: frozenset[ProcessId], task: TaskId) -> bool:
    able = states.may_run(task)
    return any(process in room or process in states.owners[task] for process in able)
