"""How loaded the clients are while the public sticky assignor fills them up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heapreplace

from caughtup.models.assignment.client_state import ClientState


class PublicLoads:
    """The tasks per stream thread of each client, by its place.

    Unlike the internal sticky assignor, the public one doesn't look at threads when two clients
    are as loaded: it takes the one that it meets first. Clients are only ever given tasks here,
    which keeps the least loaded one cheap to find.

    Source: StickyTaskAssignor.AssignmentState.clientLoad.
    """

    def __init__(self, clients: Sequence[ClientState], everyone: Iterable[int]) -> None:
        """Keep the clients, and their places in the order in which a set of all has them."""
        self._clients = clients
        self.loads = [client.task_load() for client in clients]
        self._queue = [(self.loads[place], turn, place) for turn, place in enumerate(everyone)]
        heapify(self._queue)

    def changed(self, place: int) -> None:
        """Update the order after a client was assigned a task."""
        self.loads[place] = self._clients[place].task_load()

    def least(self) -> int:
        """Find the least loaded of all clients; of equal ones, the one that is met first."""
        while True:
            load, turn, place = self._queue[0]
            if load == self.loads[place]:
                return place
            heapreplace(self._queue, (self.loads[place], turn, place))

    def should_give_way(self, place: int) -> bool:
        """Return whether a client has a task or more for each thread while another has fewer.

        Source: StickyTaskAssignor.AssignmentState.shouldBalanceLoad.
        """
        load = self.loads[place]
        return load >= 1 and self.loads[self.least()] < load
