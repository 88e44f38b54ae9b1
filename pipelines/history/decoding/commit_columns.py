"""Decode many offset commits at once as columns: of an Arrow batch, or of a broker's answer.

Only records in the usual format are decoded by columns. All others go through the models' decoders
one by one, which decide what is accepted, and the reasons for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from caughtup.models.errors import DecodeError
from caughtup.models.ids import NUMBER_MAX
from caughtup.models.polls.column_reader import Ints, Rows
from caughtup.models.polls.commit_columns import (
    PARTITION_BYTES,
    TOPIC_ID_BYTES,
    read_commit_values,
)
from caughtup.models.wire.bounds import time_ms
from caughtup.models.wire.consumer_offsets import (
    OFFSET_COMMIT_TYPES,
    OffsetKey,
    decode_key,
    decode_offset_commit,
)
from caughtup.pipelines.history.decoding.arrow_reader import ArrowReader
from caughtup.pipelines.history.decoding.log_records import ArrowRecords, OffsetRecords
from caughtup.pipelines.schema import LATEST_MS

#: The type of columns of names, and of topic ids, which have few distinct values.
NAMES = pa.dictionary(pa.int32(), pa.string())
_IDS = pa.dictionary(pa.int32(), pa.binary())
#: One row for each commit. ``log_partition`` and ``log_offset``: the place of its record in
#: ``__consumer_offsets``; times are in ms since 1970. ``present`` is False for a tombstone, which
#: has the record's time, and none of the value's fields. Fields are null if the value's version
#: lacks them, or if they hold Kafka's "none": an epoch or expiry of -1, a topic id of zeros.
COMMIT_COLUMNS = pa.schema(
    [
        pa.field("group", NAMES, nullable=False),
        pa.field("topic", NAMES, nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("present", pa.bool_(), nullable=False),
        pa.field("committed", pa.int64()),
        pa.field("leader_epoch", pa.int32()),
        pa.field("metadata", pa.string()),
        pa.field("commit_time_ms", pa.int64(), nullable=False),
        pa.field("expire_time_ms", pa.int64()),
        # 16 bytes; not Arrow's fixed-size type, which Spark does not support.
        pa.field("topic_id", _IDS),
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
    return decode_commits(ArrowRecords(batch))


def decode_commits(records: OffsetRecords) -> CommitBatch:
    """Decode the offset commits among records, in either form, as ``decode_commit_columns``."""
    commits, plain = _plain_commits(records)
    if plain.all():
        return CommitBatch(commits, np.empty(0, np.int64), [])
    rows, careful = np.flatnonzero(plain), np.flatnonzero(~plain)
    commits = commits.filter(pa.array(plain))
    found = decode_commit_records(records.take(careful), careful.tolist())
    if found.commits:
        more = pa.RecordBatch.from_pylist(list(found.commits.values()), schema=COMMIT_COLUMNS)
        order = np.argsort(np.concatenate((rows, np.array(list(found.commits), np.int64))))
        commits = pa.concat_batches((commits, more)).take(pa.array(order))
    return CommitBatch(commits, np.array(found.others, np.int64), found.undecodable)


def _plain_commits(records: OffsetRecords) -> tuple[pa.RecordBatch, Rows]:
    """Decode all rows as commits; also return a mask of those in the usual format."""
    keys, values = records.keys(), records.values()
    present = values.good.copy()
    record_time = records.times()

    group, topic, partition = _read_keys(keys)
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
        records.partitions(),
        records.offsets(),
        pa.array(record_time),
    ]
    plain = keys.good & (values.good | ~present) & in_range
    return pa.RecordBatch.from_arrays(columns, schema=COMMIT_COLUMNS), plain


def _read_keys(
    keys: ArrowReader,
) -> tuple[pa.DictionaryArray, pa.DictionaryArray, NDArray[np.int32]]:
    """Return each key's group, topic and partition.

    The part before the partition is the same in many keys, and read once in all of them.
    """
    tail = np.maximum(keys.end - PARTITION_BYTES, keys.begin)
    heads = keys.cut(keys.begin, tail).dictionary_encode()
    of_row = heads.indices.to_numpy()
    distinct = ArrowReader.of_column(heads.dictionary)
    distinct.require(np.isin(distinct.int16(), OFFSET_COMMIT_TYPES))
    group = distinct.text(*distinct.span(distinct.int16()))
    topic = distinct.text(*distinct.span(distinct.int16()))
    distinct.require(distinct.position == distinct.end)
    keys.position = tail
    partition: NDArray[np.int32] = keys.int32()
    known = distinct.good[of_row] if len(of_row) else keys.good
    keys.require(known & (partition >= 0) & (partition <= NUMBER_MAX))
    return _names(group, of_row), _names(topic, of_row), partition


def _names(distinct: pa.StringArray, of_row: Ints) -> pa.DictionaryArray:
    """Return a column of names from those of each distinct key."""
    names = distinct.dictionary_encode()
    numbers = names.indices.to_numpy()[of_row]
    return pa.DictionaryArray.from_arrays(pa.array(numbers), names.dictionary)


def _topic_ids(items: NDArray[np.void]) -> pa.DictionaryArray:
    """Return topic ids as a column, null for zeros."""
    halves = items.view(np.int64).reshape(-1, 2)
    known = np.packbits((halves[:, 0] | halves[:, 1]) != 0, bitorder="little")
    bounds = np.arange(len(items) + 1, dtype=np.int32) * TOPIC_ID_BYTES
    ids = pa.BinaryArray.from_buffers(
        pa.binary(), len(items), [pa.py_buffer(each) for each in (known, bounds, items)]
    )
    return ids.dictionary_encode()


class CommitRecords(NamedTuple):
    """Commits by row index, as fields of COMMIT_COLUMNS; rows with other keys; malformed rows.

    Rows are in the given order.
    """

    commits: dict[int, dict[str, object]]
    others: list[int]
    undecodable: list[tuple[int, str]]


def decode_commit_records(batch: pa.RecordBatch, rows: Iterable[int]) -> CommitRecords:
    """Decode records one by one with the models' decoders, as in ``decode_commit_columns``.

    ``rows``: the index under which each record of ``batch`` is returned.
    """
    found = CommitRecords({}, [], [])
    keys = batch.column("key")
    for at, row in enumerate(rows):
        try:
            raw_key = keys[at].as_py()
            if raw_key is None:
                raise DecodeError("no_key", "a record without a key")
            key = decode_key(raw_key)
            if isinstance(key, OffsetKey):
                found.commits[row] = _commit(batch, at, key)
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
