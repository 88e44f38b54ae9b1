"""Faust tables in memory whose standbys survive rebalances.

Faust's own tables in memory drop standbys at the end of each rebalance, and restore actives from
the start of their changelogs. Tables at ``caughtup-memory://`` keep their standbys, with the offset
that each has reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from faust.stores.memory import Store as FaustStore
from faust.streams import current_event
from faust.tables.sets import SetTable
from faust.types import TP, EventT


class MemoryStore(FaustStore[object, object]):
    """A table in memory, with the offset that each partition's copy has reached.

    Tables of sets work as with Faust's own store, which keeps the sets in other objects.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._offsets: dict[TP, int] = {}

    @property
    def _knows(self) -> bool:
        return not isinstance(self.table, SetTable)

    def persisted_offset(self, tp: TP) -> int | None:
        """Return the offset of the last record in a partition's copy; None without a copy."""
        return self._offsets.get(tp)

    def set_persisted_offset(self, tp: TP, offset: int) -> None:
        """Set the changelog offset of the last local change."""
        if self._knows:
            self._offsets[tp] = max(offset, self._offsets.get(tp, offset))

    def apply_changelog_batch(self, batch: Iterable[EventT[object]], *how: Any, **to: Any) -> None:
        """Apply records of the changelog."""
        events = list(batch)
        super().apply_changelog_batch(events, *how, **to)
        for event in events:
            self.set_persisted_offset(event.message.tp, event.message.offset)

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        """Forget partitions of which this worker no longer has a copy."""
        kept = (active_tps | standby_tps) if self._knows else active_tps
        for tp in self._offsets.keys() - kept:
            del self._offsets[tp]
        await super().on_recovery_completed(kept, standby_tps)

    def __setitem__(self, key: object, value: object) -> None:
        """Set a key, in the partition of the record that is being processed."""
        event = current_event()
        if event is not None and not self.table.use_partitioner:
            self._key_partition[key] = event.message.partition
        super().__setitem__(key, value)

    def __delitem__(self, key: object) -> None:
        """Delete a key."""
        super().__delitem__(key)
        self._key_partition.pop(key, None)

    def update(self, *given: Any, **more: Any) -> None:
        """Set several keys."""
        for key, value in dict(*given, **more).items():
            self[key] = value
