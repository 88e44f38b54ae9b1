"""Read a batch's ranges of logs in Spark's tasks, and pack their records for the buckets.

A reader (``ReadRanges``) gives the records that count. Commits of open transactions, and records of
own topics in them, are kept from batch to batch, as rows of the state: one for each partition with
any.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import Accumulator
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, StringType

from caughtup.models.ids import TopicPartition
from caughtup.models.polls.column_reader import Ints
from caughtup.models.polls.pending_commits import PendingCommit, PendingCommits
from caughtup.models.polls.record_batches import LogRange, LogRecords
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines.history.decoding.batches import (
    PACKED,
    RECORD_COLUMNS,
    pack,
    pack_records,
    packed_rows,
    unpack,
)
from caughtup.pipelines.spark.arrow import arrow_schema
from caughtup.pipelines.tables import columns

#: Yields what counts of each range, in order, with its partition; ``PendingCommits`` change.
ReadRanges = Callable[
    [Iterable[tuple[LogRange, PendingCommits]]], Iterator[tuple[TopicPartition, LogRecords]]
]
#: The kind of packs and of the state that hold what is in open transactions, and its columns.
#: Without a topic, as earlier releases wrote it, a row is of ``__consumer_offsets``.
PENDING = "pending"
PENDING_COMMITS = columns(topic=StringType(), partition=IntegerType(), value=BinaryType())
_PENDING_ROWS = arrow_schema(PENDING_COMMITS)
_COMMIT_ROWS = pa.schema(
    [
        ("producer_id", pa.int64()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp_ms", pa.int64()),
    ]
)
#: The offsets that are worth a task of their own.
_OFFSETS_A_TASK = 50_000

#: The ranges of a task, each with its partition's pending commits, packed.
_Task = Sequence[tuple[LogRange, bytes | None]]


def read_ranges(
    spark: SparkSession,
    read: ReadRanges,
    ranges: Sequence[LogRange],
    pending: Mapping[TopicPartition, bytes],
    most_tasks: int,
    kinds: Mapping[str, str],
    buckets: int,
    rows: Accumulator[int],
) -> DataFrame:
    """Return rows of PACKED: the records of ranges, and what is pending after them.

    ``pending``: by partition, what is packed of its open transactions; it stays where no range is
    read. ``kinds``: the table of each own topic. ``rows`` counts the records.
    """
    asked = {one.partition for one in ranges}
    kept = [
        (LogRange(partition, 0, 0), packed)
        for partition, packed in sorted(pending.items())
        if partition not in asked
    ]
    known = ((one, pending.get(one.partition)) for one in ranges)
    tasks = _tasks([*known, *kept], most_tasks)
    return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(
        partial(_read_tasks, read, tasks, dict(kinds), buckets, rows), PACKED
    )


def lacking_module(spark: SparkSession, read: ReadRanges) -> str | None:
    """Return the Python package that Spark's executors lack to use a reader; None if they can.

    Executors on this machine, in this process, have what it has.
    """
    if (spark.sparkContext.master or "").startswith("local["):
        return None
    count = spark.sparkContext.defaultParallelism
    pickled = CloudPickleSerializer().dumps(read)  # type: ignore[no-untyped-call]
    tried = spark.range(0, count, 1, count).mapInArrow(
        partial(_try_to_unpickle, pickled), "lacking string"
    )
    return next((row.lacking for row in tried.collect() if row.lacking), None)


def _try_to_unpickle(reader: bytes, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    lacking = None
    try:
        pickle.loads(reader)
    except ModuleNotFoundError as error:
        lacking = (error.name or "").partition(".")[0]
    for _ in numbers:
        yield pa.RecordBatch.from_arrays([pa.array([lacking], pa.string())], names=["lacking"])


def _tasks(ranges: _Task, most: int) -> list[list[tuple[LogRange, bytes | None]]]:
    """Divide ranges into tasks of about the same number of offsets, the longest ranges first."""
    total = sum(max(0, one.until - one.start) for one, _ in ranges)
    count = max(1, min(most, len(ranges), -(-total // _OFFSETS_A_TASK)))
    tasks: list[list[tuple[LogRange, bytes | None]]] = [[] for _ in range(count)]
    sizes = [0] * count
    for own in sorted(ranges, key=lambda own: (own[0].start - own[0].until, own[0].partition)):
        place = sizes.index(min(sizes))
        tasks[place].append(own)
        sizes[place] += own[0].until - own[0].start
    return tasks


def _read_tasks(
    read: ReadRanges,
    tasks: Sequence[_Task],
    kinds: dict[str, str],
    buckets: int,
    rows: Accumulator[int],
    numbers: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column("id").to_pylist():
            yield from _read_task(read, tasks[number], kinds, buckets, rows)


def _read_task(
    read: ReadRanges, task: _Task, kinds: dict[str, str], buckets: int, rows: Accumulator[int]
) -> Iterator[pa.RecordBatch]:
    ranges = [(one, _unpacked(packed, one.partition)) for one, packed in task]
    yield from pack_records(kinds, buckets, _batches(read(ranges), rows))
    left = [(*one.partition, _packed(pending)) for one, pending in ranges if len(pending)]
    if left:
        columns = zip(*left, strict=True)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, _PENDING_ROWS, strict=True)]
        kept = pa.RecordBatch.from_arrays(arrays, schema=_PENDING_ROWS)
        yield packed_rows(PENDING, [(0, pack([kept]))])


def _batches(
    found: Iterable[tuple[TopicPartition, LogRecords]], rows: Accumulator[int]
) -> Iterator[pa.RecordBatch]:
    for partition, records in found:
        rows.add(len(records.released) + len(records.logged.records))
        yield from record_batches(partition, records)


def record_batches(partition: TopicPartition, found: LogRecords) -> Iterator[pa.RecordBatch]:
    """Yield records of a partition in RECORD_COLUMNS: released commits, then those of the log."""
    if found.released:
        yield _record_batch(
            partition,
            pa.array([one.offset for one in found.released], pa.int64()),
            pa.array([one.at_ms for one in found.released], pa.int64()),
            pa.array([one.key for one in found.released], pa.binary()),
            pa.array([one.value for one in found.released], pa.binary()),
        )
    logged = found.logged
    if len(logged.records):
        assert logged.time is not None
        key_start, key_end, value_start, value_end = logged.records.columns()
        data = logged.records.data
        yield _record_batch(
            partition,
            pa.array(logged.offset),
            pa.array(logged.time),
            _pieces(data, key_start, key_end),
            _pieces(data, value_start, value_end),
        )


def _record_batch(
    partition: TopicPartition, offset: pa.Array, time: pa.Array, key: pa.Array, value: pa.Array
) -> pa.RecordBatch:
    count = len(offset)
    topic = pa.repeat(pa.scalar(partition.topic), count)
    number = pa.repeat(pa.scalar(partition.partition, pa.int32()), count)
    arrays = [topic, number, offset, time, key, value]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORD_COLUMNS)


def _pieces(data: bytes, start: Ints, end: Ints) -> pa.BinaryArray:
    """Return pieces of some bytes as a column; a piece that starts below 0 is null.

    Pieces are in the order of the bytes, so that all bytes are an array of twice as many pieces: the
    wanted ones, and those between them. Taking every other one is one operation of Arrow's.
    """
    null = start < 0
    cuts = np.empty(2 * len(start) + 1, np.int64)
    cuts[:-1:2], cuts[1::2] = start, end
    cuts[-1] = cuts[-2]
    if has_nulls := bool(null.any()):
        cuts[:-1:2][null] = cuts[1::2][null] = 0
        np.maximum.accumulate(cuts, out=cuts)
        cuts[-1] = cuts[-2]
    pieces = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 2 * len(start), [None, pa.py_buffer(cuts), pa.py_buffer(data)]
    )
    found = pieces.take(pa.array(np.arange(0, 2 * len(start), 2))).cast(pa.binary())
    return pc.if_else(pa.array(null), pa.scalar(None, pa.binary()), found) if has_nulls else found


def _packed(pending: PendingCommits) -> bytes:
    rows = [(producer, *commit) for producer, commit in pending.commits()]
    arrays = [
        pa.array(column, field.type)
        for column, field in zip(zip(*rows, strict=True), _COMMIT_ROWS, strict=True)
    ]
    return pack([pa.RecordBatch.from_arrays(arrays, schema=_COMMIT_ROWS)])


def _unpacked(packed: bytes | None, partition: TopicPartition) -> PendingCommits:
    pending = PendingCommits(every=partition.topic != CONSUMER_OFFSETS)
    if packed is not None:
        columns = (column.to_pylist() for column in unpack(packed).columns)
        for producer, *commit in zip(*columns, strict=True):
            pending.restore([(producer, PendingCommit(*commit))])
    return pending
