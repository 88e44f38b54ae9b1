"""Read fields from the buffers of an Arrow column, or from pieces of an answer of a broker."""

from __future__ import annotations

from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from caughtup.models.polls.column_reader import ColumnReader, Ints, Rows

_BYTE_TYPES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)


class ArrowReader(ColumnReader):
    """A reader of rows of bytes that can return fields as Arrow columns."""

    __slots__ = ("_buffer",)

    def __init__(self, buffer: pa.Buffer, begin: Ints, end: Ints, good: Rows) -> None:
        """``begin`` and ``end``: each row's place in the buffer (int64)."""
        self._buffer = buffer
        super().__init__(np.frombuffer(buffer, np.uint8), begin, end, good)

    @classmethod
    def of_column(cls, column: pa.Array) -> Self:
        """Return a reader of a column's buffers. Raises TypeError for one that is not binary."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if not any(holds(column.type) for holds in _BYTE_TYPES):
            raise TypeError(f"a column of {column.type} instead of bytes")
        # The cast gives 64-bit offsets, which numpy can use; it does not copy the data.
        column = column.cast(pa.large_binary())
        _, offsets, data = column.buffers()
        bounds: Ints = (
            np.frombuffer(offsets, np.int64, len(column) + 1, column.offset * 8)
            if len(column)
            else np.zeros(1, np.int64)
        )
        good: Rows = (
            column.is_valid().to_numpy(zero_copy_only=False)
            if column.null_count
            else np.ones(len(column), np.bool_)
        )
        return cls(pa.py_buffer(b"") if data is None else data, bounds[:-1], bounds[1:], good)

    @classmethod
    def of_pieces(cls, data: bytes, start: Ints, end: Ints) -> Self:
        """Return a reader of pieces of some bytes, in any order; one that starts below 0 is null."""
        good: Rows = start >= 0
        if not good.all():
            start, end = np.where(good, start, 0), np.where(good, end, 0)
        return cls(pa.py_buffer(data), start, end, good)

    def select(self, rows: Ints) -> Self:
        """Return a reader of some rows, at the same positions as this one."""
        selected = super().select(rows)
        selected._buffer = self._buffer
        return selected

    def text(self, start: Ints, end: Ints) -> pa.StringArray:
        """Return the bytes between ``start`` and ``end`` as strings; "" for rows that are not good.

        If a row is not UTF-8, all rows with other characters than ASCII become not good, since
        Arrow does not say which row it was.
        """
        try:
            return self.cut(start, end).cast(pa.string())
        except pa.ArrowInvalid:
            self.require_ascii(start, end)
            return self.cut(start, end).cast(pa.string())

    def column(self) -> pa.BinaryArray:
        """Return the rows as a column of bytes, null for those that are not good."""
        rows = self.cut(self.begin, self.end).cast(pa.binary())
        if self.good.all():
            return rows
        return pc.if_else(pa.array(self.good), rows, pa.scalar(None, pa.binary()))

    def cut(self, start: Ints, end: Ints) -> pa.LargeBinaryArray:
        """Return the bytes between ``start`` and ``end``; none for rows that are not good."""
        if not self.good.all():
            start = np.where(self.good, start, self.begin)
            end = np.where(self.good, end, self.begin)
        bounds = np.zeros(len(start) + 1, np.int64)
        np.cumsum(end - start, out=bounds[1:])
        filled = np.flatnonzero(end > start)
        if filled.size < len(start):
            # Only what isn't empty is copied, which of metadata is little; null rows are empty.
            start, end = start[filled], end[filled]
        _, _, data = self._taken(start, end).buffers()
        every = pa.py_buffer(b"") if data is None else data
        return pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), every]
        )

    def _taken(self, start: Ints, end: Ints) -> pa.LargeBinaryArray:
        # The bytes as an array of twice as many pieces: the wanted ones, and those between them, which
        # nothing looks at. Taking every other piece is then one operation of Arrow's. It wants the
        # first bound not to be after the last one, though batches that were unpacked stand behind.
        rows = len(start)
        cuts = np.empty(2 * rows + 2, np.int64)
        cuts[0], cuts[1:-1:2], cuts[2:-1:2], cuts[-1] = 0, start, end, self._buffer.size
        pieces = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), 2 * rows + 1, [None, pa.py_buffer(cuts), self._buffer]
        )
        return pieces.take(pa.array(np.arange(1, 2 * rows + 1, 2)))
