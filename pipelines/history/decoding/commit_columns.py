"""Decode the offset commits of a whole Arrow batch as columns, without copying its data.

Only records in the usual format are decoded by columns. All others go through the models' decoders
one by one, which decide what is accepted, and the reasons for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from caughtup.models.errors import DecodeError
from caughtup.models.ids import NUMBER_MAX
from caughtup.models.polls.column_reader import ColumnReader, Ints, Rows
from caughtup.models.polls.commit_columns import TOPIC_ID_BYTES, read_commit_values
from caughtup.models.wire.bounds import time_ms
from caughtup.models.wire.consumer_offsets import (
    OFFSET_COMMIT_TYPES,
    OffsetKey,
    decode_key,
    decode_offset_commit,
)
from caughtup.pipelines.schema import LATEST_MS

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


#: One row for each commit. ``log_partition`` and ``log_offset``: the place of its record in
#: ``__consumer_offsets``; times are in ms since 1970. ``present`` is False for a tombstone, which
#: has the record's time, and none of the value's fields. Fields are null if the value's version
#: lacks them, or if they hold Kafka's "none": an epoch or expiry of -1, a topic id of zeros.
COMMIT_COLUMNS = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("present", pa.bool_(), nullable=False),
        pa.field("committed", pa.int64()),
        pa.field("leader_epoch", pa.int32()),
        pa.field("metadata", pa.string()),
        pa.field("commit_time_ms", pa.int64(), nullable=False),
        pa.field("expire_time_ms", pa.int64()),
        # 16 bytes; not Arrow's fixed-size type, which Spark does not support.
        pa.field("topic_id", pa.binary()),
        pa.field("log_partition", pa.int32(), nullable=False),
        pa.field("log_offset", pa.int64(), nullable=False),
        pa.field("record_time_ms", pa.int64(), nullable=False),
    ]
)


class CommitBatch(NamedTuple):
    """The decoded records of a batch of ``__consumer_offsets``, in its order.

    ``others``: the indices of rows with a well-formed key of another type. ``undecodable``: the
    indices of malformed rows, with the reason in one line.
    """

    commits: pa.RecordBatch
    others: NDArray[np.int64]
    undecodable: list[tuple[int, str]]


def decode_commit_columns(batch: pa.RecordBatch) -> CommitBatch:
    """Decode the offset commits among records of ``__consumer_offsets``.

    ``batch`` has the columns partition, offset, timestamp_ms (ms since 1970), key and value (any
    binary type of Arrow, or null). The result's ``commits`` has COMMIT_COLUMNS.
    """
    commits, plain = _plain_commits(batch)
    if plain.all():
        return CommitBatch(commits, np.empty(0, np.int64), [])
    rows = np.flatnonzero(plain)
    commits = commits.take(pa.array(rows))
    found = decode_commit_records(batch, np.flatnonzero(~plain).tolist())
    if found.commits:
        more = pa.RecordBatch.from_pylist(list(found.commits.values()), schema=COMMIT_COLUMNS)
        order = np.argsort(np.concatenate((rows, np.array(list(found.commits), np.int64))))
        commits = pa.concat_batches((commits, more)).take(pa.array(order))
    return CommitBatch(commits, np.array(found.others, np.int64), found.undecodable)


def _plain_commits(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Rows]:
    """Decode all rows as commits; also return a mask of those in the usual format."""
    keys, values = ArrowReader(batch.column("key")), ArrowReader(batch.column("value"))
    present = values.good.copy()
    record_time = batch.column("timestamp_ms").cast(pa.int64()).to_numpy()

    key_type = keys.int16()
    keys.require(np.isin(key_type, OFFSET_COMMIT_TYPES))
    group = keys.text(*keys.span(keys.int16()))
    topic = keys.text(*keys.span(keys.int16()))
    partition = keys.int32()
    keys.require((partition >= 0) & (partition <= NUMBER_MAX) & (keys.position == keys.end))

    fields = read_commit_values(values)
    metadata = values.text(fields["metadata_start"], fields["metadata_end"])
    time = np.where(present, fields["time"], record_time)
    in_range = (time >= 0) & (time <= LATEST_MS)
    columns = [
        group,
        topic,
        pa.array(partition),
        pa.array(present),
        pa.array(fields["committed"], mask=~present),
        pa.array(fields["epoch"], mask=fields["epoch"] == -1),
        metadata if present.all() else pc.if_else(pa.array(present), metadata, None),
        pa.array(time),
        pa.array(fields["expire"], mask=fields["expire"] == -1),
        _topic_ids(fields["topic_id"]),
        batch.column("partition").cast(pa.int32()),
        batch.column("offset").cast(pa.int64()),
        pa.array(record_time),
    ]
    plain = keys.good & (values.good | ~present) & in_range
    return pa.RecordBatch.from_arrays(columns, schema=COMMIT_COLUMNS), plain


def _topic_ids(items: NDArray[np.void]) -> pa.BinaryArray:
    """Return topic ids as a column, null for zeros."""
    halves = items.view(np.int64).reshape(-1, 2)
    known = np.packbits((halves[:, 0] | halves[:, 1]) != 0, bitorder="little")
    bounds = np.arange(len(items) + 1, dtype=np.int32) * TOPIC_ID_BYTES
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(items), [pa.py_buffer(each) for each in (known, bounds, items)]
    )


class CommitRecords(NamedTuple):
    """Commits by row index, as fields of COMMIT_COLUMNS; rows with other keys; malformed rows.

    Rows are in the given order.
    """

    commits: dict[int, dict[str, object]]
    others: list[int]
    undecodable: list[tuple[int, str]]


def decode_commit_records(batch: pa.RecordBatch, rows: Iterable[int]) -> CommitRecords:
    """Decode some rows of a batch, as in ``decode_commit_columns``, with the models' decoders."""
    found = CommitRecords({}, [], [])
    keys = batch.column("key")
    for row in rows:
        try:
            raw_key = keys[row].as_py()
            if raw_key is None:
                raise DecodeError("no_key", "a record without a key")
            key = decode_key(raw_key)
            if isinstance(key, OffsetKey):
                found.commits[row] = _commit(batch, row, key)
            else:
                found.others.append(row)
        except DecodeError as error:
            found.undecodable.append((row, " ".join(str(error).split())))
    return found


def _commit(batch: pa.RecordBatch, row: int, key: OffsetKey) -> dict[str, object]:
    record_time = batch.column("timestamp_ms")[row].as_py()
    raw_value = batch.column("value")[row].as_py()
    fields: dict[str, object] = {}
    if raw_value is None:
        time = time_ms(record_time)
    else:
        value = decode_offset_commit(raw_value)
        time = value.commit_timestamp_ms
        fields = {
            "committed": value.offset,
            "leader_epoch": _known(value.leader_epoch),
            "metadata": value.metadata,
            "expire_time_ms": _known(value.expire_timestamp_ms),
            "topic_id": value.topic_id,
        }
    return fields | {
        "group": key.group,
        "topic": key.topic,
        "partition": key.partition,
        "present": raw_value is not None,
        "commit_time_ms": time,
        "log_partition": batch.column("partition")[row].as_py(),
        "log_offset": batch.column("offset")[row].as_py(),
        "record_time_ms": record_time,
    }


def _known(number: int) -> int | None:
    return None if number == -1 else number
