"""Even out the tasks over the stream threads, the second step of the assignor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.ids import TaskId


def balance_over_threads(
    clients: Sequence[ClientState],
    role: Literal["active", "standby"],
    may_move: Callable[[int, int], bool] = lambda source, destination: True,
) -> None:
    """Move tasks of one role from loaded to less loaded clients until no move helps.

    Every ordered pair of clients is tried, again and again; tasks move in TaskId order while the
    source would stay at least as loaded as the destination becomes, and while ``may_move`` allows
    it between the two, which are named by their places.
    Source: HighAvailabilityTaskAssignor.balanceTasksOverThreads.
    """
    raised = [_raised(client) for client in clients]
    least = min(raised)
    moved = True
    while moved:
        moved = False
        for place, source in enumerate(clients):
            lowered = _lowered(source)
            if lowered < least:
                continue
            movable = sorted(source.active if role == "active" else source.standby)
            for other, destination in enumerate(clients):
                if lowered < raised[other] or other == place or not may_move(place, other):
                    continue
                given = _move(movable, source, destination, role)
                if given:
                    moved = True
                    movable = [task for task in movable if task not in given]
                    lowered = _lowered(source)
                    raised[other] = _raised(destination)
            raised[place] = _raised(source)
            least = min(raised)


def _lowered(client: ClientState) -> float:
    """Return the load of a client if it had one task less."""
    return (client.task_count() - 1.0) / client.capacity


def _raised(client: ClientState) -> float:
    """Return the load of a client if it had one task more."""
    return (client.task_count() + 1.0) / client.capacity


def _move(
    movable: Sequence[TaskId],
    source: ClientState,
    destination: ClientState,
    role: Literal["active", "standby"],
) -> set[TaskId]:
    """Move tasks, in this order, from one client to another while that helps, and name them."""
    own = source.active if role == "active" else source.standby
    others = destination.active if role == "active" else destination.standby
    given: set[TaskId] = set()
    for task in movable:
        if _lowered(source) < _raised(destination):
            break
        if not destination.has(task):
            own.remove(task)
            others.add(task)
            given.add(task)
    return given
