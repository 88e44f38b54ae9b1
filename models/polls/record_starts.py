"""Where each record of a batch begins: a record's length says where the next one is.

Source: Kafka's ``DefaultRecord``.
"""

from __future__ import annotations

import numpy as np

from caughtup.models.errors import DecodeError
from caughtup.models.polls.column_reader import ColumnReader, Ints

#: The most bytes of a length, and the fewest bytes of a record with its length.
LENGTH_BYTES = 5
_LEAST_RECORD_BYTES = 7
#: At least this many batches are read in step, a record of each at a time; fewer, one by one.
_MANY = 100


def find_record_starts(data: bytes, start: Ints, end: Ints, count: Ints) -> Ints:
    """Return the start of each record (int64), at its length: ``count`` records of each batch.

    The records fill each batch from ``start`` to ``end``. Raises DecodeError ``bad_batch`` if not.
    """
    _require_fit(bool(((count >= 0) & (count * _LEAST_RECORD_BYTES <= end - start)).all()))
    last = np.cumsum(count)
    starts = np.empty(int(count.sum()), np.int64)
    row, left, at = last - count, count.copy(), start.copy()
    raw = np.frombuffer(data, np.uint8)
    while (active := np.flatnonzero(left)).size >= _MANY:
        starts[row[active]] = at[active]
        reader = ColumnReader(raw, at[active], end[active], np.ones(len(active), np.bool_))
        _, at[active] = reader.span(reader.varint(LENGTH_BYTES))
        _require_fit(bool(reader.good.all()))
        row[active] += 1
        left[active] -= 1
    for batch in active.tolist():
        first, of_batch = row.item(batch), left.item(batch)
        found, at[batch] = _of_one_batch(data, at.item(batch), of_batch)
        starts[first : first + of_batch] = found
    _require_fit(bool((at == end).all()))
    return starts


def _of_one_batch(data: bytes, at: int, count: int) -> tuple[list[int], int]:
    """Return the starts of ``count`` records, and the end of the last one."""
    found = []
    try:
        for _ in range(count):
            found.append(at)
            length = data[at]
            at += 1
            if length >= 0x80:
                byte, shift = data[at], 7
                length = length & 0x7F | (byte & 0x7F) << shift
                at += 1
                while byte >= 0x80 and shift < 7 * LENGTH_BYTES:
                    byte, shift = data[at], shift + 7
                    length |= (byte & 0x7F) << shift
                    at += 1
            _require_fit(not length & 1)  # negative
            at += length >> 1
    except IndexError:
        _require_fit(fulfilled=False)
    return found, at


def _require_fit(fulfilled: bool) -> None:
    if not fulfilled:
        raise DecodeError("bad_batch", "records that aren't as long as their batch")
