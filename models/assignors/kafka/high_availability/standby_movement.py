"""Add copies where standbys are caught up, until they are where they belong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

from caughtup.models.assignment.catch_up import CatchUp
from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.decision import Deferral, Rule
from caughtup.models.assignment.releases import NEWEST, Release
from caughtup.models.assignors.java.priority_queue import JavaPriorityQueue
from caughtup.models.assignors.kafka.high_availability.constrained_priority_set import (
    ConstrainedPrioritySet,
)
from caughtup.models.assignors.kafka.high_availability.task_movement import WarmUps, in_array_order
from caughtup.models.ids import TaskId

#: A standby, and the place of its client.
_Copy = tuple[TaskId, int]


def move_standbys(
    clients: Sequence[ClientState],
    catch_up: CatchUp,
    warm_ups: WarmUps,
    warming: set[tuple[int, TaskId]],
    release: Release = NEWEST,
) -> list[Deferral]:
    """Add a copy on a client that lags less for each standby that isn't caught up.

    ``warming`` are warm-ups of actives, (client, task), which stay. With no warm-up left the
    standby itself gives way. Source: TaskMovement.assignStandbyTaskMovements.
    """
    deferrals: list[Deferral] = []
    waiting = [
        (task, place)
        for place, client in enumerate(clients)
        for task in catch_up.waiting(place, client.standby)
        if (place, task) not in warming
    ]
    tasks = sum(len(client.active) for client in clients)
    if not waiting or all(client.task_count() == tasks for client in clients):
        return deferrals  # nothing to move, or, everybody having everything, nowhere to go
    holders = _holders(clients)

    def caught_up_without(task: TaskId) -> frozenset[int]:
        return catch_up.caught_up(task) - holders[task]

    def can_move(task: TaskId, place: int) -> bool:
        source = catch_up.most_caught_up(task, place, holders[task])
        return source is not None or bool(caught_up_without(task))

    # Most groups at rest end here: where no copy can be the first to move, none can be the next.
    if not any(can_move(task, place) for task, place in waiting):
        return deferrals
    # Whoever is caught up on a task only ever gets a copy here, so that one who is found later is
    # there from the start. If there is none, the queue's order never shows.
    queued = None
    if any(caught_up_without(task) for task, _ in waiting):
        queued = ConstrainedPrioritySet(clients)
    for task, place in _in_turn(waiting, catch_up, release):
        rule = Rule.CAUGHT_UP
        source = queued.poll(caught_up_without(task)) if queued else None
        if source is None:
            rule = Rule.MOST_CAUGHT_UP
            source = catch_up.most_caught_up(task, place, holders[task])
        if source is None:
            continue  # every client that lags less has a copy already
        clients[source].standby.add(task)
        holders[task].add(source)
        warm_up = warm_ups.take()
        if warm_up is None:
            clients[place].standby.remove(task)
            holders[task].remove(place)
        if queued:
            queued.offer_changed(source, place)
        deferrals.append(Deferral(task, False, source, place, rule, False, warm_up))
    return deferrals


def _holders(clients: Sequence[ClientState]) -> dict[TaskId, set[int]]:
    """Name the clients that have a copy of each task."""
    holders: defaultdict[TaskId, set[int]] = defaultdict(set)
    for place, client in enumerate(clients):
        for task in chain(client.active, client.standby):
            holders[task].add(place)
    return holders


def _in_turn(waiting: Sequence[_Copy], catch_up: CatchUp, release: Release) -> Iterator[_Copy]:
    """Return copies in the order in which Java's PriorityQueue polls them.

    The fewer clients are caught up on a task, the earlier its turn; then by TaskId. To the queue
    all copies of a task are equal, so that their order depends on all that it ever held.
    """
    if release < Release.V3_3:
        in_order = sorted(waiting, key=lambda copy: (copy[1], copy[0]))
        turns = [(len(catch_up.caught_up(task)), task, place) for task, place in in_order]
        return ((task, place) for _, task, place in in_array_order(turns))
    tasks = sorted({task for task, _ in waiting})
    number = {task: number for number, task in enumerate(tasks)}
    tasks.sort(key=lambda task: len(catch_up.caught_up(task)))
    turn = {task: turn for turn, task in enumerate(tasks)}
    if len(tasks) == len(waiting):
        return iter(sorted(waiting, key=lambda copy: turn[copy[0]]))
    offered = sorted(waiting, key=lambda copy: number[copy[0]])
    offered.sort(key=lambda copy: copy[1])
    queue = JavaPriorityQueue[int]([turn[task] for task, _ in offered])
    queue.offer_all(range(len(offered)))
    return (offered[queue.poll()] for _ in range(len(offered)))
