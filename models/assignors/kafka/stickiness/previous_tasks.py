"""The previous clients of each task, in the orders of Kafka's sticky assignors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from caughtup.models.assignment.releases import NEWEST, Release
from caughtup.models.assignment.scenario import Client
from caughtup.models.assignors.java.hash_map import JavaHashMap, task_hash_code_of
from caughtup.models.assignors.java.hash_order import ClientHashOrder
from caughtup.models.ids import TaskId


class StickyHistory:
    """The previous tasks of clients, which are places.

    If several clients report that they ran a task, the last one counts in the order of
    ``order.everyone``. Tasks that the topology no longer has are kept, because they occupy the hash
    table and so change its order.

    Source: LegacyStickyTaskAssignor.mapPreviousTaskAssignment.
    """

    def __init__(
        self, clients: Sequence[Client], order: ClientHashOrder, release: Release = NEWEST
    ) -> None:
        self._order = order
        self._hash_code = task_hash_code_of(release)
        self._owners: dict[TaskId, int] = {}
        self._standbys: dict[TaskId, list[int]] = {}
        self._copies: dict[TaskId, list[int]] = {}
        for place in order.everyone:
            client = clients[place]
            for task in sorted(client.previous_active):
                self._owners[task] = place
            for task in client.previous_standby:
                self._standbys.setdefault(task, []).append(place)
        self._standbys = {task: order.of(places) for task, places in self._standbys.items()}

    def owner(self, task: TaskId) -> int | None:
        """Return the client that ran a task, or None."""
        return self._owners.get(task)

    def owners(self) -> Iterator[tuple[TaskId, int]]:
        """Return the tasks that ran and their clients, in the order of Java's HashMap."""
        keys = JavaHashMap[TaskId](self._hash_code, keys=self._owners)
        return ((task, self._owners[task]) for task in keys)

    def standbys(self, task: TaskId) -> Sequence[int]:
        """Return the clients that had a standby, in the order of Java's HashSet."""
        return self._standbys.get(task, ())

    def copied_standbys(self, task: TaskId) -> Sequence[int]:
        """Return the same clients in the order of a copy of that HashSet."""
        copy = self._copies.get(task)
        if copy is None:
            copy = self._copies[task] = self._order.of_copy(self.standbys(task))
        return copy
