"""The positions of a Faust worker's tables, from Faust's own recovery."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faust.types import AppT

from caughtup.followers.python.copies import Resume
from caughtup.followers.python.topology import Topology
from caughtup.models.ids import TaskId, TopicPartition


class FaustCopies:
    """A read-only view of a worker's tables, which Faust restores by itself.

    Faust restores in the application's thread, and this is called in the consumer's. So collections
    that change there are copied before they are iterated.
    """

    def __init__(self, app: AppT, topology: Topology) -> None:
        """Make the view of the tables of ``app``."""
        self._app = app
        self._topology = topology
        self._active: frozenset[TopicPartition] = frozenset()
        self._recovered: frozenset[TopicPartition] = frozenset()
        app.on_rebalance_complete.connect(self._complete)

    def positions(self) -> Mapping[TopicPartition, int]:
        """Return the next offset to restore of each copy; source: faust.tables.recovery.Recovery.

        Faust has the offset of the last record read, None or -1 for none. It writes records to a
        table in batches, and all of them before a partition is handed over.
        """
        recovery = self._recovery
        positions: dict[TopicPartition, int] = {}
        for partitions, offsets in (
            (recovery.standby_tps, recovery.standby_offsets),
            (recovery.active_tps, recovery.active_offsets),
        ):
            last = offsets.copy()
            for one in partitions.copy():
                offset = last.get(one)
                positions[TopicPartition(*one)] = 0 if offset is None else offset + 1
        return positions

    def restored(self, task: TaskId) -> bool:
        """Return whether a task has been restored since it became active here."""
        return self._recovered.issuperset(self._topology.tables_of(task).values())

    def assigned(
        self, active: frozenset[TaskId], standby: frozenset[TaskId], resume: Resume
    ) -> None:
        """Apply an assignment; Faust's recovery starts and resumes by itself."""
        self._active = frozenset(
            one for task in active for one in self._topology.tables_of(task).values()
        )
        self._recovered &= self._active

    async def _complete(self, *given: object, **more: object) -> None:
        """Handle Faust's signal that all actives are restored, perhaps of an earlier rebalance."""
        restored = {TopicPartition(*one) for one in self._recovery.active_tps.copy()}
        self._recovered = self._active & restored

    @property
    def _recovery(self) -> Any:
        tables: Any = self._app.tables
        return tables.recovery
