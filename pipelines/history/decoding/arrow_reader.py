"""Read fields of all rows of a binary Arrow column at once, without copying its data."""

from __future__ import annotations

from typing import Self

import numpy as np
import pyarrow as pa

from caughtup.models.polls.column_reader import ColumnReader, Ints, Rows

_BYTE_TYPES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)


class ArrowReader(ColumnReader):
    """A reader of an Arrow column's buffers. Raises TypeError for a column that is not binary."""

    __slots__ = ("_buffer",)

    def __init__(self, column: pa.Array) -> None:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if not any(holds(column.type) for holds in _BYTE_TYPES):
            raise TypeError(f"a column of {column.type} instead of bytes")
        # The cast gives 64-bit offsets, which numpy can use; it does not copy the data.
        column = column.cast(pa.large_binary())
        _, offsets, data = column.buffers()
        self._buffer = pa.py_buffer(b"") if data is None else data
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
        super().__init__(np.frombuffer(self._buffer, np.uint8), bounds[:-1], bounds[1:], good)

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
        raw = self._cut(start, end)
        try:
            return raw.cast(pa.string())
        except pa.ArrowInvalid:
            self.require_ascii(start, end)
            return self._cut(start, end).cast(pa.string())

    def _cut(self, start: Ints, end: Ints) -> pa.LargeBinaryArray:
        # The column's bytes as an array of twice as many pieces: the wanted ones, and those between
        # them. Taking every other piece is then one operation of Arrow's.
        rows = len(self.good)
        cuts = np.empty(2 * rows + 1, np.int64)
        if self.good.all():
            cuts[:-1:2], cuts[1::2] = start, end
        else:
            cuts[:-1:2] = np.where(self.good, start, self.begin)
            cuts[1::2] = np.where(self.good, end, self.begin)
        cuts[-1] = cuts[-2] if rows else 0
        pieces = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), 2 * rows, [None, pa.py_buffer(cuts), self._buffer]
        )
        return pieces.take(pa.array(np.arange(0, 2 * rows, 2)))
