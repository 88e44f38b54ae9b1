"""Which of a task's clients runs it: changes of roles balance the actives and cost nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from caughtup.models.assignors.minimal.copies import ExistingCopies
from caughtup.models.assignors.minimal.tags import TagSpread


class Roles:
    """The actives of tasks whose copies are placed; ``clients`` has the active's first.

    Changes are made in ``clients``. ``counts`` are the actives of each client.
    """

    def __init__(
        self,
        clients: list[list[int]],
        copies: ExistingCopies,
        capacities: Sequence[int],
        spread: TagSpread,
    ) -> None:
        self.capacities = capacities
        self._clients = clients
        self._copies = copies
        self._spread = spread
        self.counts = [0] * len(capacities)
        for own in clients:
            self.counts[own[0]] += 1

    def tasks(self) -> Iterable[int]:
        """Return the tasks, all of which have an active."""
        return range(len(self._clients))

    def arcs(self, task: int) -> list[tuple[int, int]]:
        """Return the exchanges of a task's active with each of its standbys."""
        active, *standbys = self._clients[task]
        return [(active, standby) for standby in standbys]

    def has_unbuilt(self, _source: int) -> bool:
        """Return False: the copies that have to be built are already placed."""
        return False

    def unbuilt(self, _source: int, _destination: int) -> int | None:
        """Return None."""
        return None

    def nearness(self, task: int, client: int) -> tuple[int, int]:
        """Return a sort key: the offsets that the client has left to restore, then the task."""
        return self._copies.distance(task, client), task

    def pick(self, source: int, destination: int) -> int | None:
        """Choose the active with the least to restore on a client that has no copy of it.

        Those come first whose copies stay spread over as many tag values.
        """
        return min(
            (
                task
                for task, own in enumerate(self._clients)
                if own[0] == source and destination not in own
            ),
            key=lambda task: (
                self._gives_way(self._clients[task], destination) is None,
                self.nearness(task, destination),
            ),
            default=None,
        )

    def move(self, task: int, _source: int, destination: int) -> None:
        """Make the destination the active; without a copy, it gets one in the place of another."""
        own = self._clients[task]
        if destination not in own:
            leaving = self._gives_way(own, destination)
            own[own.index(own[0] if leaving is None else leaving)] = destination
        own.remove(destination)
        own.insert(0, destination)

    def _gives_way(self, own: Sequence[int], destination: int) -> int | None:
        """Return the copy without which the others are spread over as many tag values as before."""
        return next((one for one in own if self._spread.may_move(own, one, destination)), None)
