"""The least loaded client that meets a condition, as Kafka's ConstrainedPrioritySet finds it."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from math import lcm
from typing import Any

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignors.java.hash_order import ClientHashOrder
from caughtup.models.assignors.java.priority_queue import JavaNumberQueue

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
        self._queue = JavaNumberQueue[Any]()
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
