"""Positions of a Faust worker's tables, as its own recovery has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from faust.types import AppT

from caughtup.followers.python.copies import Resume
from caughtup.followers.python.topology import Topology
from caughtup.models.ids import TaskId, TopicPartition


class FaustCopies:
    """The tables of a worker, which Faust restores by itself; this only looks.

    Faust restores in the thread of the application and this is called in its consumer's, so
    whatever changes there is copied before it is looked through.
    """

    def __init__(self, app: AppT, topology: Topology) -> None:
        """Look at the tables of ``app``."""
        self._app = app
        self._topology = topology
        self._active: frozenset[TopicPartition] = frozenset()
        self._recovered: frozenset[TopicPartition] = frozenset()
        app.on_rebalance_complete.connect(self._complete)

    def positions(self) -> Mapping[TopicPartition, int]:
        """Return the next offset to restore of each copy; source: faust.tables.recovery.Recovery.

        Faust keeps the offset of the last record that it read, None or -1 for none. What it reads
        is written to a table in batches, but all that is read before anything is handed over.
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
        """Hear that all actives have been restored, of whichever rebalance."""
        restored = {TopicPartition(*one) for one in self._recovery.active_tps.copy()}
        self._recovered = self._active & restored

    @property
    def _recovery(self) -> Any:
        tables: Any = self._app.tables
        return tables.recovery
