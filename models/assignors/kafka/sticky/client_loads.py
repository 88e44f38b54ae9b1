"""How loaded the clients are while the sticky assignor fills them up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heapreplace

from caughtup.models.assignment.client_state import ClientState


class ClientLoads:
    """Ranks of the clients, named by their places: the lower, the more room is left.

    An empty client comes first, whatever its threads. Of the others, the one with fewer tasks per
    stream thread comes first, and of two as loaded the one with more threads. Clients are only
    ever given tasks here, which keeps the least loaded one cheap to find.

    Source: LegacyStickyTaskAssignor.findLeastLoaded, ClientState.hasMoreAvailableCapacityThan.
    """

    def __init__(self, clients: Sequence[ClientState], everyone: Iterable[int]) -> None:
        """Keep the clients, and their places in the order in which a set of all has them."""
        self._clients = clients
        self.ranks = [_rank(client) for client in clients]
        self._queue = [(self.ranks[place], turn, place) for turn, place in enumerate(everyone)]
        heapify(self._queue)

    def changed(self, place: int) -> None:
        """Update the order after a client was assigned a task."""
        self.ranks[place] = _rank(self._clients[place])

    def least(self) -> int:
        """Find the client with the least rank; of equal ones, the one that is met first."""
        while True:
            rank, turn, place = self._queue[0]
            if rank == self.ranks[place]:
                return place
            heapreplace(self._queue, (self.ranks[place], turn, place))

    def should_give_way(self, place: int) -> bool:
        """Return whether a client has a task or more per thread while another has more room.

        Source: LegacyStickyTaskAssignor.shouldBalanceLoad.
        """
        client = self._clients[place]
        return client.task_count() >= client.capacity and (
            self.ranks[self.least()] < self.ranks[place]
        )


def _rank(client: ClientState) -> tuple[float, int]:
    load = client.task_load()
    return (load, -client.capacity if load else 0)
