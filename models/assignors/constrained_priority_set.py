"""The least loaded client that meets a condition, as Kafka's ConstrainedPrioritySet finds it."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from math import lcm

from caughtup.models.assignors.client_state import ClientState
from caughtup.models.assignors.java_hash_order import ClientHashOrder
from caughtup.models.assignors.java_priority_queue import JavaPriorityQueue

#: Loads of whole numbers compare faster than floating point; beyond this they aren't small any more.
_MOST_SHARES = 1 << 30


class ConstrainedPrioritySet:
    """Clients, named by their places in ``clients``, in the order of (task load, process id).

    Kafka changes a client's load while the client is queued, and queues another one before it
    puts that right. A heap can take harm from this and then hand out a client that isn't the
    least loaded. So as to decide the same, this set keeps the same heap, down to the order in
    which clients that were passed over return to it: that of a Java HashSet.
    """

    def __init__(self, clients: Sequence[ClientState]) -> None:
        self._clients = clients
        shares = lcm(*(client.capacity for client in clients))
        # What one task adds to a client's rank, which is (task load, place) as one number.
        self._weights = [
            len(clients) * (shares // client.capacity if shares <= _MOST_SHARES else 0)
            for client in clients
        ]
        self._ranks = [self._rank(place) for place in range(len(clients))]
        self._order = ClientHashOrder([client.process_id for client in clients], 0)
        self._queue = JavaPriorityQueue[int](self._ranks)
        self._queued: set[int] = set()
        for place in range(len(clients)):
            self._offer(place)

    def poll(self, eligible: AbstractSet[int]) -> int | None:
        """Take out the least loaded client that is eligible; None when none is."""
        if eligible.isdisjoint(self._queued):
            self._turn_over()
            return None
        queue = self._queue
        passed_over: list[int] = []
        while (place := queue.poll()) not in eligible:
            passed_over.append(place)
        self._queued.remove(place)
        if passed_over:
            queue.offer_all(self._order.of(passed_over))
        return place

    def _turn_over(self) -> None:
        """Take out all the clients, of whom none is eligible, and queue them again."""
        self._queue.offer_all(self._order.of(self._queue.drain()))

    def offer_changed(self, source: int, destination: int) -> None:
        """Queue again, in this order, two clients whose loads have changed."""
        for place in (source, destination):
            self._ranks[place] = self._rank(place)
        self._offer(source)
        self._offer(destination)

    def _offer(self, place: int) -> None:
        if place in self._queued:
            self._queue.remove(place)
        self._queued.add(place)
        self._queue.offer(place)

    def _rank(self, place: int) -> int | tuple[float, int]:
        client, weight = self._clients[place], self._weights[place]
        return client.task_count() * weight + place if weight else (client.task_load(), place)
