"""The newest end offsets of all partitions as columns, for lookups of many partitions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.column_reader import Ints

#: The time of a partition without a sample.
NEVER_MS = -1
#: The time since which a last stable offset that nothing holds back stands still.
NOT_HELD_MS = (1 << 63) - 1
#: The row of every partition without a sample.
UNKNOWN_ROW = 0
_GROWTH = 1.5
_FEWEST = 1 << 6
#: Partitions are looked up in an array if at least one in this many numbers is a partition's.
_CLOSE = 8


class Ends(NamedTuple):
    """End offsets of some partitions: arrays (int64) of the same length.

    ``readable`` is the readable end offset or, if unknown, the last stable one; ``as_of_ms`` is the
    time of the sample (ms), NEVER_MS without one. ``held_ms`` is since when (ms) an open transaction
    has held back the last stable offset where it is, NOT_HELD_MS if none does.
    """

    start: Ints
    end: Ints
    readable: Ints
    as_of_ms: Ints
    held_ms: Ints

    def part(self, some: slice) -> Ends:
        """Return the end offsets of some of the partitions."""
        return Ends(*(column[some] for column in self))


class EndColumns:
    """The newest sample in each row, with the fields of ``Ends``.

    ``moved`` is the number of the last sample that didn't only repeat the one before it. Row
    UNKNOWN_ROW is no partition's.
    """

    def __init__(self) -> None:
        self._used = UNKNOWN_ROW + 1
        self._free: list[int] = []
        self.start = np.zeros(_FEWEST, np.int64)
        self.end = np.zeros(_FEWEST, np.int64)
        self.readable = np.zeros(_FEWEST, np.int64)
        self.as_of_ms = np.full(_FEWEST, NEVER_MS, np.int64)
        self.held_ms = np.full(_FEWEST, NOT_HELD_MS, np.int64)
        self.moved = np.zeros(_FEWEST, np.int64)

    def add(self) -> int:
        """Return a row for one more partition."""
        if self._free:
            return self._free.pop()
        row = self._used
        self._used += 1
        if row == len(self.end):
            size = int(row * _GROWTH)
            for column, nothing in (
                (self.start, 0),
                (self.end, 0),
                (self.readable, 0),
                (self.as_of_ms, NEVER_MS),
                (self.held_ms, NOT_HELD_MS),
                (self.moved, 0),
            ):
                column.resize(size, refcheck=False)  # in place: no view of a column is ever kept
                column[row:] = nothing
        return row

    def put(self, row: int, ends: EndOffsets, held_ms: int | None) -> None:
        """Replace a partition's sample by a newer one; ``held_ms`` is None if nothing holds it."""
        readable = ends.readable_end_offset
        self.start[row] = ends.start_offset
        self.end[row] = ends.end_offset
        self.readable[row] = ends.last_stable_offset if readable is None else readable
        self.as_of_ms[row] = ends.as_of_ms
        self.held_ms[row] = NOT_HELD_MS if held_ms is None else held_ms

    def of(self, rows: Ints) -> Ends:
        """Return the samples in some rows now."""
        return Ends(
            self.start[rows],
            self.end[rows],
            self.readable[rows],
            self.as_of_ms[rows],
            self.held_ms[rows],
        )

    def remove(self, row: int) -> None:
        """Free a partition's row for another one."""
        self.as_of_ms[row] = NEVER_MS
        self.held_ms[row] = NOT_HELD_MS
        self._free.append(row)


class TopicRows:
    """The rows of a topic's partitions, for lookups of many at once."""

    def __init__(self, rows: dict[int, int]) -> None:
        greatest = max(rows)
        numbers = np.array(sorted(rows), np.int64)
        of_them = np.array([rows[number] for number in numbers.tolist()], np.int64)
        self._numbers: Ints | None = None
        if greatest < _CLOSE * len(rows):
            self._rows = np.full(greatest + 2, UNKNOWN_ROW, np.int64)
            self._rows[numbers] = of_them
        else:
            self._numbers, self._rows = numbers, of_them

    def of(self, partitions: Ints) -> Ints:
        """Return the rows of partitions (int64), UNKNOWN_ROW for unknown partitions."""
        numbers, rows, last = self._numbers, self._rows, len(self._rows) - 1
        if numbers is None:  # the last element stands for all greater numbers
            return rows[np.minimum(partitions, last)]
        at = np.minimum(np.searchsorted(numbers, partitions), last)
        return np.where(numbers[at] == partitions, rows[at], UNKNOWN_ROW)
