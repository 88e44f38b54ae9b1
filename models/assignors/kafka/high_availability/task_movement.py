"""Copies that are not caught up where they were placed: others keep the tasks while they warm up.

Source: Kafka's internal TaskMovement and ConstrainedPrioritySet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from math import lcm

from caughtup.models.assignment.client_state import CatchUp, ClientState
from caughtup.models.assignment.configs import NEWEST, Release
from caughtup.models.assignment.decision import Deferral, Rule
from caughtup.models.assignors.java.hash_order import ClientHashOrder
from caughtup.models.assignors.java.priority_queue import JavaNumberQueue, JavaPriorityQueue
from caughtup.models.ids import TaskId

#: Loads as whole numbers compare faster than floats; above this bound they are no longer small.
_MOST_SHARES = 1 << 30


class ConstrainedPrioritySet:
    """Clients, which are places in ``clients``, in the order of (task load, process id).

    Kafka changes a client's load while the client is queued, and queues another one before it
    corrects the heap. Such a heap can poll a client that isn't the least loaded. To decide the
    same, this set keeps the same heap, down to the order in which clients that were passed over
    return to it: that of a Java HashSet.
    """

    def __init__(self, clients: Sequence[ClientState]) -> None:
        self._clients = clients
        shares = lcm(*(client.capacity for client in clients))
        # The increase of a client's rank per task; the rank is (task load, place) as one number.
        self._weights = [
            len(clients) * (shares // client.capacity if shares <= _MOST_SHARES else 0)
            for client in clients
        ]
        self._ranks = [self._rank(place) for place in range(len(clients))]
        self._places = {rank: place for place, rank in enumerate(self._ranks)}
        self._order = ClientHashOrder([client.process_id for client in clients], 0)
        self._queue = JavaNumberQueue[int | tuple[float, int]]()
        self._queue.offer_all(self._ranks)
        self._queued = set(range(len(clients)))

    def poll(self, eligible: AbstractSet[int]) -> int | None:
        """Remove and return the least loaded client that is eligible; None if none is."""
        if eligible.isdisjoint(self._queued):
            self._offer_all([self._places[rank] for rank in self._queue.drain()])
            return None
        places, poll = self._places, self._queue.poll
        passed_over: list[int] = []
        while (place := places[poll()]) not in eligible:
            passed_over.append(place)
        self._queued.remove(place)
        if passed_over:
            self._offer_all(passed_over)
        return place

    def _offer_all(self, places: Sequence[int]) -> None:
        """Queue clients again that were polled in this order."""
        self._queue.offer_all(map(self._ranks.__getitem__, self._order.of(places)))

    def offer_changed(self, source: int, destination: int) -> None:
        """Queue two clients again, in this order, whose loads have changed."""
        both = source, destination
        for place in both:
            before, rank = self._ranks[place], self._rank(place)
            if rank != before:
                if place in self._queued:
                    self._queue.change(before, rank)
                del self._places[before]
                self._ranks[place] = rank
                self._places[rank] = place
        for place in both:
            if place in self._queued:
                self._queue.remove(self._ranks[place])
            self._queued.add(place)
            self._queue.offer(self._ranks[place])

    def _rank(self, place: int) -> int | tuple[float, int]:
        client, weight = self._clients[place], self._weights[place]
        return client.task_count() * weight + place if weight else (client.task_load(), place)


#: A standby, and the place of its client.
_Copy = tuple[TaskId, int]
_Turn = tuple[int, TaskId, int]


class WarmUps:
    """The remaining warm-ups of this decision (max.warmup.replicas)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._taken = 0

    def take(self) -> int | None:
        """Return the next warm-up's number, from 1, or None if the limit is reached."""
        if self._taken == self._limit:
            return None
        self._taken += 1
        return self._taken


def move_actives(
    clients: Sequence[ClientState],
    catch_up: CatchUp,
    warm_ups: WarmUps,
    release: Release = NEWEST,
) -> list[Deferral]:
    """Move each active that isn't caught up where it was placed to a client that lags less.

    Tasks on which fewer clients are caught up come first. Every deferral requires a probing
    rebalance. Source: TaskMovement.assignActiveTaskMovements.
    """
    deferrals: list[Deferral] = []
    turns = [
        (len(catch_up.caught_up(task)), task, place)
        for place, client in enumerate(clients)
        for task in sorted(catch_up.waiting(place, client.active))
    ]
    if not turns:
        return deferrals
    queued = ConstrainedPrioritySet(clients)
    for _, task, place in sorted(turns) if release >= Release.V3_3 else in_array_order(turns):
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


def in_array_order(turns: Sequence[_Turn]) -> list[_Turn]:
    """Return movements in the order of the array of Java's PriorityQueue, offered in this order.

    Each is the number of caught-up clients, a task and a place, of which the queue ignores the
    place. Releases before 3.3, which fixed KAFKA-13600, iterated over the queue instead of polling
    it.
    """
    queue = JavaPriorityQueue[int]([turn[:2] for turn in turns])
    queue.offer_all(range(len(turns)))
    return [turns[number] for number in queue.in_array_order()]


def move_standbys(
    clients: Sequence[ClientState],
    catch_up: CatchUp,
    warm_ups: WarmUps,
    warming: set[tuple[int, TaskId]],
    release: Release = NEWEST,
) -> list[Deferral]:
    """Add a copy on a client that lags less for each standby that isn't caught up.

    ``warming`` are the warm-ups of actives, as (client, task), which stay. If no warm-up is left,
    the standby itself is removed. Source: TaskMovement.assignStandbyTaskMovements.
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
        return deferrals  # no standby waits, or every client has a copy of every task
    holders = _holders(clients)

    def caught_up_without(task: TaskId) -> frozenset[int]:
        return catch_up.caught_up(task) - holders[task]

    def can_move(task: TaskId, place: int) -> bool:
        source = catch_up.most_caught_up(task, place, holders[task])
        return source is not None or bool(caught_up_without(task))

    # Most stable groups end here: if no copy can be the first to move, none can be the next.
    if not any(can_move(task, place) for task, place in waiting):
        return deferrals
    # Caught-up clients only ever gain copies here, so a caught-up client without a copy that is
    # found later is one from the start. If there is none, the queue is never polled.
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
    """Return the clients that have a copy of each task."""
    holders: defaultdict[TaskId, set[int]] = defaultdict(set)
    for place, client in enumerate(clients):
        for task in chain(client.active, client.standby):
            holders[task].add(place)
    return holders


def _in_turn(waiting: Sequence[_Copy], catch_up: CatchUp, release: Release) -> Iterator[_Copy]:
    """Return copies in the order in which Java's PriorityQueue polls them.

    Tasks on which fewer clients are caught up come first, then the lower TaskId. To the queue all
    copies of a task are equal, so that their order depends on all elements that it has held.
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
