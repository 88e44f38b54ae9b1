"""Faust tables in memory whose standbys are worth something when they take over.

Faust's own tables in memory forget what they aren't active for whenever a rebalance ends, and
an active is restored from its changelog's beginning. Tables at ``caughtup-memory://`` keep the
copies that they stand by for, and know how far each is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from faust.stores.memory import Store as FaustsStore
from faust.streams import current_event
from faust.tables.sets import SetTable
from faust.types import TP, EventT


class Store(FaustsStore[Any, Any]):
    """A table in memory, with the offset that each partition's copy has reached.

    Tables of sets keep theirs in objects of their own, and are as with Faust's store.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self._offsets: dict[TP, int] = {}

    @property
    def _knows(self) -> bool:
        return not isinstance(self.table, SetTable)

    def persisted_offset(self, tp: TP) -> int | None:
        """Return the offset of the last record that a partition's copy has, None for no copy."""
        return self._offsets.get(tp)

    def set_persisted_offset(self, tp: TP, offset: int) -> None:
        """Hear that a change made here is in the changelog."""
        if self._knows:
            self._offsets[tp] = max(offset, self._offsets.get(tp, offset))

    def apply_changelog_batch(self, batch: Iterable[EventT[Any]], *how: Any, **to: Any) -> None:
        """Apply records of the changelog."""
        events = list(batch)
        super().apply_changelog_batch(events, *how, **to)
        for event in events:
            self.set_persisted_offset(event.message.tp, event.message.offset)

    async def on_recovery_completed(self, active_tps: set[TP], standby_tps: set[TP]) -> None:
        """Forget the partitions that there is no copy of any more."""
        kept = (active_tps | standby_tps) if self._knows else active_tps
        for tp in self._offsets.keys() - kept:
            del self._offsets[tp]
        await super().on_recovery_completed(kept, standby_tps)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Change a key, of the partition whose record is being worked on."""
        event = current_event()
        if event is not None and not self.table.use_partitioner:
            self._key_partition[key] = event.message.partition
        super().__setitem__(key, value)

    def __delitem__(self, key: Any) -> None:
        """Delete a key."""
        super().__delitem__(key)
        self._key_partition.pop(key, None)

    def update(self, *given: Any, **more: Any) -> None:
        """Change keys."""
        for key, value in dict(*given, **more).items():
            self[key] = value
