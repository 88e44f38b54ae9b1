"""Reads the same field of every row of a binary Arrow column at once, by numpy over its buffers.

For Kafka's formats, whose integers are big-endian and whose strings have their length before them:
what caughtup.models.wire.reader does for one message.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Rows = NDArray[np.bool_]

_BYTE_TYPES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)


class ColumnReader:
    """Goes through all rows of a column in step, one field after the other.

    ``good`` tells the rows where each field so far was there; it starts with those that are not
    null. Of any other row, what a method returns means nothing. ``position`` and ``end`` are bytes
    in the column's data. Raises TypeError for a column that doesn't hold bytes.
    """

    __slots__ = ("_begin", "_buffer", "_data", "end", "good", "position")

    def __init__(self, column: pa.Array) -> None:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if not any(holds(column.type) for holds in _BYTE_TYPES):
            raise TypeError(f"a column of {column.type}, not of bytes")
        # 64-bit offsets, which index the data as they are; the data isn't copied.
        column = column.cast(pa.large_binary())
        _, offsets, data = column.buffers()
        self._buffer = pa.py_buffer(b"") if data is None else data
        self._data = np.frombuffer(self._buffer, np.uint8)
        bounds: Ints = (
            np.frombuffer(offsets, np.int64, len(column) + 1, column.offset * 8)
            if len(column)
            else np.zeros(1, np.int64)
        )
        self._begin = self.position = bounds[:-1]
        self.end = bounds[1:]
        self.good: Rows = (
            column.is_valid().to_numpy(zero_copy_only=False)
            if column.null_count
            else np.ones(len(column), np.bool_)
        )

    def select(self, rows: Ints) -> ColumnReader:
        """Make a reader of some rows only, which stands where this one does."""
        selected = object.__new__(ColumnReader)
        selected._buffer, selected._data = self._buffer, self._data
        selected._begin, selected.position = self._begin[rows], self.position[rows]
        selected.end, selected.good = self.end[rows], self.good[rows]
        return selected

    def put_back(self, rows: Ints, selected: ColumnReader) -> None:
        """Set the place of these rows to where their own reader has come to."""
        self.position = self.position.copy()
        self.position[rows], self.good[rows] = selected.position, selected.good

    def require(self, condition: Rows) -> None:
        """Count a row that doesn't fulfil the condition among those that are not good."""
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

    def short_uvarint(self) -> Ints:
        """Read an unsigned varint of at most two bytes; a row with a longer one is not good."""
        value = self.uint8()
        rows = np.flatnonzero(value >= 0x80)
        if rows.size:
            longer = self.select(rows)
            high = longer.uint8()
            longer.require(high < 0x80)
            value[rows] = value[rows] & 0x7F | high << 7
            self.put_back(rows, longer)
        return value

    def span(self, length: Ints) -> tuple[Ints, Ints]:
        """Skip ``length`` bytes of each row, and return where they start and end.

        A row with a negative length is not good.
        """
        start = self.position
        self.position = start + length
        self.good &= (length >= 0) & (self.position <= self.end)
        return start, self.position

    def text(self, start: Ints, end: Ints) -> pa.StringArray:
        """Make strings of the bytes in between, one a row, "" where the row is not good.

        Where they are not UTF-8 in some row, no row stays good that has more than ASCII in it:
        Arrow doesn't tell which row it was.
        """
        raw = self._cut(start, end)
        try:
            return raw.cast(pa.string())
        except pa.ArrowInvalid:
            self.good &= _is_ascii(raw)
            return self._cut(start, end).cast(pa.string())

    def _cut(self, start: Ints, end: Ints) -> pa.LargeBinaryArray:
        # The column's own bytes as an array of twice as many strings, those asked for and what is
        # between them: taking every other one is then Arrow's, and a step of C++ for each.
        rows = len(self.good)
        cuts = np.empty(2 * rows + 1, np.int64)
        if self.good.all():
            cuts[:-1:2], cuts[1::2] = start, end
        else:
            cuts[:-1:2] = np.where(self.good, start, self._begin)
            cuts[1::2] = np.where(self.good, end, self._begin)
        cuts[-1] = cuts[-2] if rows else 0
        pieces = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), 2 * rows, [None, pa.py_buffer(cuts), self._buffer]
        )
        return pieces.take(pa.array(np.arange(0, 2 * rows, 2)))

    def _field(self, layout: np.dtype[Any]) -> NDArray[Any]:
        start = self.position
        self.position = start + layout.itemsize
        self.good &= self.position <= self.end
        if not self.good.any():  # there may not be as many bytes in all
            return np.zeros(len(start), layout)
        if not self.good.all():
            start = np.where(self.good, start, 0)
        # The field as if it stood at each byte of the data; nothing is copied but what is asked.
        count = len(self._data) - layout.itemsize + 1
        return np.ndarray((count,), layout, self._data, strides=(1,))[start]


def _is_ascii(strings: pa.LargeBinaryArray) -> Rows:
    _, offsets, data = strings.buffers()
    bounds = np.frombuffer(offsets, np.int64, len(strings) + 1)
    above = np.zeros(bounds[-1] + 1, np.int64)
    np.cumsum(np.frombuffer(data, np.uint8, bounds[-1]) >= 0x80, out=above[1:])
    plain: Rows = above[bounds[1:]] == above[bounds[:-1]]
    return plain
