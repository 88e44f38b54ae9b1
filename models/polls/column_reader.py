"""Reads the same field of every row of a column of bytes at once, by numpy.

For Kafka's formats, with big-endian integers and length-prefixed strings: it does for columns what
caughtup.models.wire.reader does for one message.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Rows = NDArray[np.bool_]
Scalar = TypeVar("Scalar", bound=np.generic)

#: Bytes are copied out to be checked if they are less than this part of the data.
_FEW = 8


class ColumnReader:
    """Reads all rows of a column in step, one field after the other.

    ``good`` marks the rows in which each field so far was present; initially those that are not
    null. For all other rows the methods' results are undefined. ``position`` and ``end`` are byte
    positions in the column's data.
    """

    __slots__ = ("_data", "begin", "end", "good", "position")

    def __init__(self, data: NDArray[np.uint8], begin: Ints, end: Ints, good: Rows) -> None:
        self._data = data
        self.begin = self.position = begin
        self.end = end
        self.good = good

    @classmethod
    def of(cls, rows: Sequence[bytes | None]) -> Self:
        """Return a reader of separate bytes objects; None is null."""
        good = np.ones(len(rows), np.bool_)
        bounds = np.zeros(len(rows) + 1, np.int64)
        try:
            data = b"".join(rows)  # type: ignore[arg-type]
        except TypeError:
            nulls = _nulls(rows)
            good[nulls] = False
            rows = list(rows)
            for at in nulls:
                rows[at] = b""
            data = b"".join(rows)  # type: ignore[arg-type]
        lengths = map(len, rows)  # type: ignore[arg-type]
        np.cumsum(np.fromiter(lengths, np.int64, len(rows)), out=bounds[1:])
        return cls(np.frombuffer(data, np.uint8), bounds[:-1], bounds[1:], good)

    def select(self, rows: Ints) -> Self:
        """Return a reader of some rows only, at the same positions."""
        selected = object.__new__(type(self))
        selected._data = self._data
        selected.begin, selected.position = self.begin[rows], self.position[rows]
        selected.end, selected.good = self.end[rows], self.good[rows]
        return selected

    def put_back(self, rows: Ints, selected: ColumnReader) -> None:
        """Set the positions of these rows to those of their own reader."""
        self.position = self.position.copy()
        self.position[rows], self.good[rows] = selected.position, selected.good

    def require(self, condition: Rows) -> None:
        """Mark rows that don't meet the condition as not good."""
        self.good &= condition

    def uint8(self) -> Ints:
        """Read a byte of each row."""
        return self._field(np.dtype(np.uint8)).astype(np.int64)

    def int16(self) -> Ints:
        """Read a signed 16-bit integer of each row."""
        return self._field(np.dtype(">i2")).astype(np.int64)

    def int32(self) -> NDArray[np.int32]:
        """Read a signed 32-bit integer of each row."""
        return self._field(np.dtype(">i4")).astype(np.int32)

    def int64(self) -> Ints:
        """Read a signed 64-bit integer of each row."""
        return self._field(np.dtype(">i8")).astype(np.int64)

    def raw(self, size: int) -> NDArray[np.void]:
        """Read ``size`` bytes of each row."""
        return self._field(np.dtype((np.void, size)))

    def uvarint(self, most_bytes: int) -> Ints:
        """Read an unsigned varint of each row; a row with a longer one is not good."""
        value = self.uint8()
        rows = np.flatnonzero(value >= 0x80)
        if not rows.size:
            return value
        value[rows] &= 0x7F
        for index in range(1, most_bytes):
            longer = self.select(rows)
            byte = longer.uint8()
            self.put_back(rows, longer)
            value[rows] |= (byte & 0x7F) << 7 * index
            rows = rows[byte >= 0x80]
            if not rows.size:
                return value
        self.good[rows] = False
        return value

    def varint(self, most_bytes: int) -> Ints:
        """Read a signed (zigzag) varint of each row; a row with a longer one is not good."""
        value = self.uvarint(most_bytes)
        signed: Ints = (value >> 1) ^ -(value & 1)
        return signed

    def span(self, length: Ints) -> tuple[Ints, Ints]:
        """Skip ``length`` bytes of each row, and return where they start and end.

        A row with a negative length is not good.
        """
        start = self.position
        self.position = start + length
        self.good &= (length >= 0) & (self.position <= self.end)
        return start, self.position

    def require_ascii(self, start: Ints, end: Ints) -> None:
        """Mark rows with any byte that isn't ASCII between the bounds as not good."""
        rows = np.flatnonzero(self.good & (end > start))
        if not rows.size or self._data.max() < 0x80:
            return
        start, end = start[rows], end[rows]
        length = end - start
        total = int(length.sum())
        if total > len(self._data) // _FEW:
            above = np.zeros(len(self._data) + 1, np.int32)
            np.cumsum(self._data >= 0x80, out=above[1:])
            self.good[rows] &= above[end] == above[start]
            return
        before = np.cumsum(length) - length
        chosen = self._data[np.arange(total) + np.repeat(start - before, length)]
        if chosen.max() >= 0x80:
            self.good[rows] &= ~np.logical_or.reduceat(chosen >= 0x80, before)

    def _field(self, layout: np.dtype[Scalar]) -> NDArray[Scalar]:
        start = self.position
        self.position = start + layout.itemsize
        self.good &= self.position <= self.end
        if not self.good.any():  # the data may be shorter than one field
            return np.zeros(len(start), layout)
        if not self.good.all():
            start = np.where(self.good, start, 0)
        # A view with a field at each byte of the data: only the chosen ones are copied.
        count = len(self._data) - layout.itemsize + 1
        return np.ndarray((count,), layout, self._data, strides=(1,))[start]


def _nulls(rows: Sequence[bytes | None]) -> list[int]:
    """Return the positions of None, which are few."""
    found: list[int] = []
    with suppress(ValueError):
        while True:
            found.append(rows.index(None, found[-1] + 1 if found else 0))
    return found
