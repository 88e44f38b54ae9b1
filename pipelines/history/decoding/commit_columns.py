"""Offset commits of a whole Arrow batch as columns, with no step of Python for each record.

What is accepted, and what is said of the rest, is what the models' decoders say: only records of
the shapes that they take for sure are read here, and all others go through them one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from caughtup.models.ids import NUMBER_MAX
from caughtup.models.polls.column_reader import Rows
from caughtup.models.polls.commit_columns import TOPIC_ID_BYTES, read_commit_values
from caughtup.models.wire.consumer_offsets import OFFSET_COMMIT_TYPES
from caughtup.pipelines.history.decoding.arrow_reader import ArrowReader
from caughtup.pipelines.history.decoding.commit_records import decode_commit_records
from caughtup.pipelines.schema import LATEST_MS

#: One row a commit. Partition and offset in the log are the place of its record in
#: ``__consumer_offsets``; times are ms since the epoch. ``present`` is False for a tombstone, which
#: has none of the value's fields, and the record's time for its own. What its version doesn't hold
#: is null, as is what holds Kafka's "none": an epoch or expiry of -1, a topic id of zeroes.
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
        # 16 bytes; not of Arrow's fixed size, which Spark doesn't take.
        pa.field("topic_id", pa.binary()),
        pa.field("log_partition", pa.int32(), nullable=False),
        pa.field("log_offset", pa.int64(), nullable=False),
        pa.field("record_time_ms", pa.int64(), nullable=False),
    ]
)


class DecodedCommits(NamedTuple):
    """What a batch of records of ``__consumer_offsets`` says, in its order.

    ``others`` are the numbers of the rows whose key is well-formed and not an offset commit's.
    ``undecodable`` are those that don't follow their format, and why, in one line.
    """

    commits: pa.RecordBatch
    others: NDArray[np.int64]
    undecodable: list[tuple[int, str]]


def decode_commit_columns(batch: pa.RecordBatch) -> DecodedCommits:
    """Decode the offset commits among records of ``__consumer_offsets``.

    ``batch`` has the columns partition, offset, timestamp_ms (ms since the epoch), key and value
    (bytes of any of Arrow's types, or null); ``commits`` has COMMIT_COLUMNS.
    """
    commits, plain = _plain_commits(batch)
    if plain.all():
        return DecodedCommits(commits, np.empty(0, np.int64), [])
    rows = np.flatnonzero(plain)
    commits = commits.take(pa.array(rows))
    found = decode_commit_records(batch, np.flatnonzero(~plain).tolist())
    if found.commits:
        more = pa.RecordBatch.from_pylist(list(found.commits.values()), schema=COMMIT_COLUMNS)
        order = np.argsort(np.concatenate((rows, np.array(list(found.commits), np.int64))))
        commits = pa.concat_batches((commits, more)).take(pa.array(order))
    return DecodedCommits(commits, np.array(found.others, np.int64), found.undecodable)


def _plain_commits(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Rows]:
    """Decode all rows; return which of them are commits in the usual format, too."""
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
    """Make a column of them, null where there are only zeroes."""
    halves = items.view(np.int64).reshape(-1, 2)
    known = np.packbits((halves[:, 0] | halves[:, 1]) != 0, bitorder="little")
    bounds = np.arange(len(items) + 1, dtype=np.int32) * TOPIC_ID_BYTES
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(items), [pa.py_buffer(each) for each in (known, bounds, items)]
    )
