"""The order in which Java iterates over hash sets of clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from caughtup.models.assignors.java.hash_map import JavaHashMap, copied_table, grown_table
from caughtup.models.ids import ProcessId

_WORD = (1 << 32) - 1
#: A bucket with this many keys may become a tree, which changes the order of its keys.
_CROWDED = 9


class ClientHashOrder:
    """Orders sets of clients, which are places in the order of process ids.

    ``everyone`` are all the clients in the order in which they are added to sets: the order of
    their process ids unless another one is given.
    """

    def __init__(
        self,
        process_ids: Sequence[ProcessId],
        most_excluded: int,
        everyone: Sequence[int] | None = None,
    ) -> None:
        """Prepare the order of all clients. Sets lack at most ``most_excluded`` of them."""
        self._codes = [process_hash_code(process_id) for process_id in process_ids]
        self._spread = [(code ^ (code & _WORD) >> 16) & _WORD for code in self._codes]
        self.everyone: Sequence[int] = range(len(process_ids)) if everyone is None else everyone
        self._orders: dict[int, list[int]] = {}
        self._buckets: dict[int, list[int]] = {}
        self._uncrowded_from = self._least_table_without_crowds()
        self._may_crowd = self._crowds(self.everyone, grown_table(0), most_excluded)

    def of(self, places: Sequence[int]) -> list[int]:
        """Return the order of a HashSet to which clients were added in this order."""
        return self._walk(places, grown_table(0))

    def of_copy(self, places: Sequence[int]) -> list[int]:
        """Return the order of a HashSet that was copied from one with this order."""
        return self._walk(places, copied_table(len(places)))

    def of_all_but(self, excluded: AbstractSet[int]) -> list[int]:
        """Return the order of a HashSet to which all clients but the excluded ones were added."""
        if self._may_crowd:
            return self.of([place for place in self.everyone if place not in excluded])
        table = grown_table(len(self.everyone) - len(excluded))
        order = self._orders.get(table)
        if order is None:
            order = self._orders[table] = self._by_bucket(self.everyone, table)
        return [place for place in order if place not in excluded]

    def _walk(self, places: Sequence[int], table: int) -> list[int]:
        # Called once a poll: most sets are far too small to crowd any bucket.
        small = len(places) < _CROWDED or table >= self._uncrowded_from
        if small or not self._crowds(places, table):
            return self._by_bucket(places, max(table, grown_table(len(places))))
        return list(JavaHashMap[int](self._codes.__getitem__, table, places))

    def _by_bucket(self, places: Sequence[int], table: int) -> list[int]:
        """Return places by bucket, if none was ever crowded, in the order given within a bucket."""
        buckets = self._buckets.get(table)
        if buckets is None:
            mask = table - 1
            buckets = self._buckets[table] = [spread & mask for spread in self._spread]
        return sorted(places, key=buckets.__getitem__)

    def _crowds(self, places: Sequence[int], table: int, excluded: int = 0) -> bool:
        """Return whether a bucket can get crowded at any size that the table has while it grows.

        ``excluded`` of the places may be missing, so that as many later places may be among the
        first.
        """
        while len(places) >= _CROWDED and table < self._uncrowded_from:
            filled = places[: table * 3 // 4 + 1 + excluded]
            if self._most_in_a_bucket(filled, table) >= _CROWDED:
                return True
            if len(filled) == len(places):
                break
            table *= 2
        return False

    def _least_table_without_crowds(self) -> int:
        """Return the least table size from which on all the clients together crowd no bucket."""
        table = grown_table(0)
        # Clients whose hash codes are equal share a bucket however large the table is.
        while table <= _WORD and self._most_in_a_bucket(self.everyone, table) >= _CROWDED:
            table *= 2
        return table

    def _most_in_a_bucket(self, places: Sequence[int], table: int) -> int:
        spread, mask = self._spread, table - 1
        return max(Counter(spread[place] & mask for place in places).values(), default=0)


def process_hash_code(process_id: ProcessId) -> int:
    """Return ProcessId.hashCode, which is its UUID's, before it is cut to 32 bits."""
    both = process_id.most ^ process_id.least
    return both >> 32 ^ both
