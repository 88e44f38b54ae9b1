"""The least loaded client that meets a condition, as Kafka's ConstrainedPrioritySet finds it."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from caughtup.models.assignors.client_state import ClientState
from caughtup.models.assignors.java_hash_order import ClientHashOrder
from caughtup.models.assignors.java_priority_queue import JavaPriorityQueue


class ConstrainedPrioritySet:
    """Clients, named by their places in ``clients``, in the order of (task load, process id).

    Kafka changes a client's load while the client is queued, and queues another one before it
    puts that right. A heap can take harm from this and then hand out a client that isn't the
    least loaded. So as to decide the same, this set keeps the same heap, down to the order in
    which clients that were passed over return to it: that of a Java HashSet.
    """

    def __init__(self, clients: Sequence[ClientState]) -> None:
        self._clients = clients
        self._ranks = [(client.task_load(), place) for place, client in enumerate(clients)]
        self._order = ClientHashOrder([client.process_id for client in clients], 0)
        self._queue = JavaPriorityQueue[int](self._ranks.__getitem__)
        self._queued: set[int] = set()
        for place in range(len(clients)):
            self._offer(place)

    def poll(self, eligible: AbstractSet[int]) -> int | None:
        """Take out the least loaded client that is eligible; None when none is."""
        if eligible.isdisjoint(self._queued):
            self._turn_over()
            return None
        passed_over: list[int] = []
        while (place := self._queue.poll()) not in eligible:
            passed_over.append(place)
        self._queued.remove(place)
        for other in self._order.of(passed_over):
            self._queue.offer(other)
        return place

    def _turn_over(self) -> None:
        """Take out all the clients, of whom none is eligible, and queue them again."""
        places = self._queue.drain()
        for place in self._order.of(places):
            self._queue.offer(place)

    def offer_changed(self, source: int, destination: int) -> None:
        """Queue again, in this order, two clients whose loads have changed."""
        for place in (source, destination):
            self._ranks[place] = (self._clients[place].task_load(), place)
        self._offer(source)
        self._offer(destination)

    def _offer(self, place: int) -> None:
        if place in self._queued:
            self._queue.remove(place)
        self._queued.add(place)
        self._queue.offer(place)
