"""Leave tasks where they are caught up, and warm up the clients that are to have them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from caughtup.models.assignors.catch_up import CatchUp
from caughtup.models.assignors.client_state import ClientState
from caughtup.models.assignors.constrained_priority_set import ConstrainedPrioritySet
from caughtup.models.assignors.decision import Rule
from caughtup.models.assignors.java_priority_queue import JavaPriorityQueue
from caughtup.models.ids import TaskId


class Deferral(NamedTuple):
    """A copy that was placed on ``destination`` and has to wait until it is caught up there.

    ``source`` has or keeps the copy meanwhile; both are places in the order of process ids.
    ``rule`` says how the source was found. ``warm_up`` numbers the warm-up, from 1; None where a
    standby and an active exchanged their places (``swapped``) or no warm-up was left.
    """

    task: TaskId
    active: bool
    source: int
    destination: int
    rule: Rule
    swapped: bool
    warm_up: int | None


class WarmUps:
    """The warm-ups that may still be handed out in this decision (max.warmup.replicas)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._given = 0

    def take(self) -> int | None:
        """Hand out a warm-up: its number, from 1, or None when there are none left."""
        if self._given == self._limit:
            return None
        self._given += 1
        return self._given


def move_actives(
    clients: Sequence[ClientState], catch_up: CatchUp, warm_ups: WarmUps
) -> list[Deferral]:
    """Give each active that isn't caught up where it was placed to a client that lags less.

    The fewer clients are caught up on a task, the earlier its turn. Every deferral calls for a
    probing rebalance. Source: TaskMovement.assignActiveTaskMovements.
    """
    deferrals: list[Deferral] = []
    turns = sorted(
        (len(catch_up.caught_up(task)), task, place)
        for place, client in enumerate(clients)
        for task in catch_up.waiting(place, client.active)
    )
    if not turns:
        return deferrals
    queued = ConstrainedPrioritySet(clients)
    for _, task, place in turns:
        destination = clients[place]
        caught_up = catch_up.caught_up(task)
        rule = Rule.CAUGHT_UP_STANDBY
        source = queued.poll({c for c in caught_up if task in clients[c].standby})
        if source is None:
            rule = Rule.CAUGHT_UP
            source = queued.poll(caught_up)
        if source is None:
            rule = Rule.MOST_CAUGHT_UP
            source = catch_up.most_caught_up(task, place, ())
        assert source is not None, "it waits for a client that lags less"
        swapped = task in clients[source].standby
        clients[source].standby.discard(task)
        clients[source].active.add(task)
        destination.active.remove(task)
        warm_up = None if swapped else warm_ups.take()
        if swapped or warm_up is not None:
            destination.standby.add(task)
        queued.offer_changed(source, place)
        deferrals.append(Deferral(task, True, source, place, rule, swapped, warm_up))
    return deferrals


def move_standbys(
    clients: Sequence[ClientState],
    catch_up: CatchUp,
    warm_ups: WarmUps,
    warming: set[tuple[int, TaskId]],
) -> list[Deferral]:
    """Add a copy on a client that lags less for each standby that isn't caught up.

    ``warming`` are warm-ups of actives, (client, task), which stay. With no warm-up left the
    standby itself gives way. Source: TaskMovement.assignStandbyTaskMovements.
    """
    waiting = [
        (task, place)
        for place, client in enumerate(clients)
        for task in catch_up.waiting(place, client.standby)
        if (place, task) not in warming
    ]
    holders = _holders(clients) if waiting else {}

    def source_of(task: TaskId, place: int) -> int | None:
        """Find the client that would stand in, but for the order among those caught up."""
        if len(holders[task]) == len(clients):
            return None
        free = catch_up.caught_up(task) - holders[task]
        return min(free) if free else catch_up.most_caught_up(task, place, holders[task])

    deferrals: list[Deferral] = []
    # Where nobody could go first, nobody can go later.
    if not any(source_of(task, place) is not None for task, place in waiting):
        return deferrals
    # Clients that are caught up only ever get copies here: nobody will be found in the queue then.
    queued = None
    if any(catch_up.caught_up(task) - holders[task] for task, _ in waiting):
        queued = ConstrainedPrioritySet(clients)
    for task, place in _in_turn(waiting, catch_up):
        rule = Rule.CAUGHT_UP
        source = queued.poll(catch_up.caught_up(task) - holders[task]) if queued else None
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


def _in_turn(waiting: list[tuple[TaskId, int]], catch_up: CatchUp) -> Iterator[tuple[TaskId, int]]:
    """Put copies in the order in which Java's PriorityQueue hands them out.

    The fewer clients are caught up on a task, the earlier its turn. Several copies of one task
    are equal to the queue.
    """
    tasks = sorted({task for task, _ in waiting})
    number = {task: number for number, task in enumerate(tasks)}
    tasks.sort(key=lambda task: len(catch_up.caught_up(task)))
    turn = {task: turn for turn, task in enumerate(tasks)}
    if len(tasks) == len(waiting):
        return iter(sorted(waiting, key=lambda copy: turn[copy[0]]))
    offered = sorted(waiting, key=lambda copy: number[copy[0]])
    offered.sort(key=lambda copy: copy[1])
    turns = [turn[task] for task, _ in offered]
    queue = JavaPriorityQueue[int](turns.__getitem__)
    for copy in range(len(offered)):
        queue.offer(copy)
    return (offered[queue.poll()] for _ in range(len(offered)))
