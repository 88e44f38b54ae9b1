"""The least loaded of some clients that only ever gain tasks, for both of Kafka's sticky assignors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heapreplace
from typing import Generic, TypeVar

from caughtup.models.assignment.client_state import ClientState

#: What orders clients: their load, or their load and a tie-break.
R = TypeVar("R", float, tuple[float, int])


class ClientLoads(Generic[R]):
    """A heap of the clients, the one with the most capacity left first.

    Clients only gain tasks meanwhile, so a rank in the heap is never too high: to find the least
    loaded client, correcting the head's rank is enough.
    """

    def __init__(
        self,
        clients: Sequence[ClientState],
        everyone: Iterable[int],
        rank: Callable[[ClientState], R],
    ) -> None:
        """Prepare the ranks.

        ``everyone`` are the clients' places in the order of the set of all.
        """
        self._clients = clients
        self._rank: Callable[[ClientState], R] = rank
        self.ranks: list[R] = [rank(client) for client in clients]
        self._queue: list[tuple[R, int, int]] = [
            (self.ranks[place], turn, place) for turn, place in enumerate(everyone)
        ]
        heapify(self._queue)

    def changed(self, place: int) -> None:
        """Update a client's rank after it was assigned a task."""
        self.ranks[place] = self._rank(self._clients[place])

    def least(self) -> int:
        """Return the client with the least rank; of equal ones, the first."""
        while True:
            rank, turn, place = self._queue[0]
            if rank == self.ranks[place]:
                return place
            heapreplace(self._queue, (self.ranks[place], turn, place))

    def should_give_way(self, place: int) -> bool:
        """Return whether a client has a task or more per thread while another has more room.

        Source: LegacyStickyTaskAssignor.shouldBalanceLoad,
        StickyTaskAssignor.AssignmentState.shouldBalanceLoad.
        """
        client = self._clients[place]
        return client.task_count() >= client.capacity and (
            self.ranks[self.least()] < self.ranks[place]
        )
