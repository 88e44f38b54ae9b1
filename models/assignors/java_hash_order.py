"""The order in which Java's hash sets of clients are walked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from caughtup.models.assignors.java_hash_map import JavaHashMap, copied_table, grown_table
from caughtup.models.ids import ProcessId

_WORD = (1 << 32) - 1
#: A bucket of as many keys may become a tree, and then its order is another one.
_CROWDED = 9


class ClientHashOrder:
    """Orders sets of clients, named by their places in the order of process ids."""

    def __init__(self, process_ids: Sequence[ProcessId], most_excluded: int) -> None:
        """Take the ids of all the clients, and how many of them a set will ever be without."""
        self._codes = [process_hash_code(process_id) for process_id in process_ids]
        self._everyone = range(len(process_ids))
        self._orders: dict[int, list[int]] = {}
        self._may_crowd = self._buckets_may_crowd(most_excluded)

    def of(self, places: Sequence[int]) -> list[int]:
        """Order a HashSet to which clients were added in this order."""
        return self._walk(places, grown_table(0))

    def of_copy(self, places: Sequence[int]) -> list[int]:
        """Order a HashSet that was made of another one, which is walked in this order."""
        return self._walk(places, copied_table(len(places)))

    def of_all_but(self, excluded: AbstractSet[int]) -> list[int]:
        """Order a HashSet to which all clients but some were added, by process id."""
        if self._may_crowd:
            return self.of([place for place in self._everyone if place not in excluded])
        table = grown_table(len(self._everyone) - len(excluded))
        order = self._orders.get(table)
        if order is None:
            order = self._orders[table] = self._by_bucket(self._everyone, table)
        return [place for place in order if place not in excluded]

    def _by_bucket(self, places: Sequence[int], table: int) -> list[int]:
        """Go through buckets that aren't crowded, each as it was filled."""
        return sorted(places, key=lambda place: self._bucket(place, table))

    def _walk(self, places: Sequence[int], table: int) -> list[int]:
        if len(places) < _CROWDED:
            return self._by_bucket(places, table)
        keys = JavaHashMap[int](self._codes.__getitem__, table)
        for place in places:
            keys.add(place)
        return list(keys)

    def _bucket(self, place: int, table: int) -> int:
        code = self._codes[place] & _WORD
        return (code ^ code >> 16) & table - 1

    def _buckets_may_crowd(self, excluded: int) -> bool:
        """Look whether a bucket can get crowded, at any size that the table has while it grows."""
        table = grown_table(0)
        while True:
            filled = self._everyone[: table * 3 // 4 + 1 + excluded]
            buckets = Counter(self._bucket(place, table) for place in filled)
            if max(buckets.values(), default=0) >= _CROWDED:
                return True
            if len(filled) == len(self._everyone):
                return False
            table *= 2


def process_hash_code(process_id: ProcessId) -> int:
    """Give ProcessId.hashCode, that of its UUID, before it is cut to 32 bits."""
    both = process_id.most ^ process_id.least
    return both >> 32 ^ both
