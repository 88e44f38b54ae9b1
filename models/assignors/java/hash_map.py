"""java.util.HashMap: the order in which it iterates over its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Generic, TypeVar

from caughtup.models.assignment.configs import Release
from caughtup.models.assignors.java.tree_bin import JavaTreeBin
from caughtup.models.ids import TaskId

K = TypeVar("K")

_TREE_FROM = 9
_COMPUTED_TREE_FROM = 8
_LIST_UP_TO = 6
_LEAST_TABLE_WITH_TREES = 64
_WORD, _SIGN = 1 << 32, 1 << 31


class JavaHashMap(Generic[K]):
    """Keys in the buckets of a hash table that doubles when it is three quarters full.

    Within a bucket the keys are in the order in which they were added, until there are nine and the
    bucket becomes a tree. ``hash_code`` returns Java's ``hashCode`` as a signed or unsigned number
    of 32 bits; keys must be Comparable in Java, and compare here as they do there. ``table`` is the
    initial number of buckets, a power of two; ``keys``, all different, are added in their order.

    Source: java.util.HashMap of Java 8 to 25 (putVal, computeIfAbsent, treeifyBin, resize,
    TreeNode.split).
    """

    __slots__ = ("_buckets", "_hash_code", "_size")

    def __init__(
        self, hash_code: Callable[[K], int], table: int = 16, keys: Iterable[K] = ()
    ) -> None:
        self._hash_code = hash_code
        added = list(keys)
        hashes = [_spread(code % _WORD) for code in map(hash_code, added)]
        uncrowded = _table_without_crowds(table, hashes)
        self._size = 0 if uncrowded is None else len(added)
        self._buckets: list[list[tuple[int, K]] | JavaTreeBin[K]] = [
            [] for _ in range(uncrowded or table)
        ]
        if uncrowded is None:
            for key in added:
                self.add(key)
        else:
            places: list[list[tuple[int, K]]] = self._buckets  # type: ignore[assignment]
            for entry in zip(hashes, added, strict=True):
                places[entry[0] & uncrowded - 1].append(entry)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[K]:
        """Iterate over the keys in Java's order."""
        return (key for _, key in chain.from_iterable(map(_in_order, self._buckets)))

    def add(self, key: K) -> None:
        """Add a key that the map doesn't have."""
        entry = self._entry(key)
        place = entry[0] & len(self._buckets) - 1
        bucket = self._buckets[place]
        if isinstance(bucket, JavaTreeBin):
            bucket.add(entry)
        else:
            bucket.append(entry)
            if len(bucket) >= _TREE_FROM:
                if len(self._buckets) < _LEAST_TABLE_WITH_TREES:
                    self._double()
                else:
                    self._buckets[place] = JavaTreeBin(bucket)
        self._size += 1
        if self._size > len(self._buckets) * 3 // 4:
            self._double()

    def compute(self, key: K) -> None:
        """Add a key, unless the map has it, as ``computeIfAbsent`` does.

        It comes first in its bucket, a bucket becomes a tree with eight keys, and the table doubles
        only with the next call.
        """
        if self._size > len(self._buckets) * 3 // 4:
            self._double()
        entry = self._entry(key)
        place = entry[0] & len(self._buckets) - 1
        bucket = self._buckets[place]
        if entry in _in_order(bucket):
            return
        if isinstance(bucket, JavaTreeBin):
            bucket.add(entry)
        else:
            bucket.insert(0, entry)
            if len(bucket) >= _COMPUTED_TREE_FROM:
                if len(self._buckets) < _LEAST_TABLE_WITH_TREES:
                    self._double()
                else:
                    self._buckets[place] = JavaTreeBin(bucket)
        self._size += 1

    def remove(self, key: K) -> None:
        """Remove a key that the map has. The table doesn't shrink."""
        entry = self._entry(key)
        place = entry[0] & len(self._buckets) - 1
        bucket = self._buckets[place]
        if not isinstance(bucket, JavaTreeBin):
            bucket.remove(entry)
        elif not bucket.remove(entry):
            self._buckets[place] = bucket.in_order
        self._size -= 1

    def _entry(self, key: K) -> tuple[int, K]:
        """Return the key with its hash as the table uses it: signed, its halves folded together."""
        return _spread(self._hash_code(key) % _WORD), key

    def _double(self) -> None:
        """Double the table: each bucket is split in two, by the next bit of the hash."""
        bit = len(self._buckets)
        halves = [
            (
                _half(bucket, [entry for entry in _in_order(bucket) if not entry[0] & bit]),
                _half(bucket, [entry for entry in _in_order(bucket) if entry[0] & bit]),
            )
            for bucket in self._buckets
        ]
        self._buckets = [lower for lower, _ in halves] + [upper for _, upper in halves]


def in_hash_order(hash_code: Callable[[K], int], keys: Iterable[K], table: int = 16) -> list[K]:
    """Return the keys in the order of a ``JavaHashMap`` to which they were added in their order.

    It makes none unless a bucket may become a tree: without trees the order is that by bucket.
    ``table`` is the initial number of buckets.
    """
    added = list(keys)
    hashes = [_spread(code % _WORD) for code in map(hash_code, added)]
    uncrowded = _table_without_crowds(table, hashes)
    if uncrowded is None:
        return list(JavaHashMap(hash_code, table, added))
    buckets = [one & uncrowded - 1 for one in hashes]
    return [added[at] for at in sorted(range(len(added)), key=buckets.__getitem__)]


def grown_table(size: int) -> int:
    """Return the number of buckets after ``size`` keys were added, if no bucket became a tree."""
    table = 16
    while size > table * 3 // 4:
        table *= 2
    return table


def copied_table(size: int) -> int:
    """Return the initial number of buckets of a HashSet that is made of ``size`` elements.

    This is Java 17's; for 12 elements, 24, 48 and so on, Java 25 has half as many buckets.
    """
    least = size * 4 // 3 + 1
    return max(16, 1 << (least - 1).bit_length())


def task_hash_code(task: TaskId) -> int:
    """Return TaskId.hashCode of a task without a named topology, before it is cut to 32 bits."""
    return (31 * 31 * 31) + 31 * 31 * task.subtopology + 31 * task.partition


def subtopology_hash_code(subtopology: int) -> int:
    """Return Subtopology.hashCode of one without a named topology."""
    return 31 * 31 + 31 * subtopology


def task_hash_code_of(release: Release) -> Callable[[TaskId], int]:
    """Return TaskId.hashCode of a release: before 3.0 it is the sum of both numbers."""
    return task_hash_code if release >= Release.V3_0 else sum


def subtopology_hash_code_of(release: Release) -> Callable[[int], int]:
    """Return the hash code of the keys of subtopologies in a release: before 3.0 their numbers."""
    return subtopology_hash_code if release >= Release.V3_0 else int


def _spread(unsigned: int) -> int:
    """Return the hash that the table uses, signed, of an unsigned hash code of 32 bits."""
    spread = unsigned ^ unsigned >> 16
    return spread - _WORD if spread >= _SIGN else spread


def _table_without_crowds(table: int, hashes: Sequence[int]) -> int | None:
    """Return the final number of buckets if no bucket ever becomes a tree; None if one may.

    Without trees, each bucket has its keys in the order in which they were added, however often the
    table doubled.
    """
    while True:
        room = table * 3 // 4
        if min(len(hashes), room + 1) >= _TREE_FROM:
            counts = [0] * table
            for one in hashes[: room + 1]:
                counts[one & table - 1] += 1
            if max(counts) >= _TREE_FROM:
                return None
        if len(hashes) <= room:
            return table
        table *= 2


def _in_order(bucket: list[tuple[int, K]] | JavaTreeBin[K]) -> list[tuple[int, K]]:
    return bucket.in_order if isinstance(bucket, JavaTreeBin) else bucket


def _half(
    bucket: list[tuple[int, K]] | JavaTreeBin[K], entries: list[tuple[int, K]]
) -> list[tuple[int, K]] | JavaTreeBin[K]:
    """Return a bucket with some of another bucket's entries: a tree only if that one was."""
    if not isinstance(bucket, JavaTreeBin) or len(entries) <= _LIST_UP_TO:
        return entries
    return bucket if len(entries) == len(bucket.in_order) else JavaTreeBin(entries)
