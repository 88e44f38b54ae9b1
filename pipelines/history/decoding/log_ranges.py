"""Read a batch's ranges of logs in Spark's tasks, and pack their records for the buckets.

A reader (``ReadRanges``) gives the records that count. Commits of open transactions, and records of
own topics in them, are kept from batch to batch, as rows of the state: one for each partition with
any.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, StringType

from caughtup.models.ids import TopicPartition
from caughtup.models.polls.pending_commits import PendingCommit, PendingCommits
from caughtup.models.polls.record_batches import LogRange, LogRecords
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines.history.decoding.batches import (
    PACKED,
    pack,
    pack_records,
    packed_rows,
    unpack,
)
from caughtup.pipelines.history.decoding.log_records import AnswerRecords, record_batch
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
_Ranges = Sequence[tuple[LogRange, PendingCommits]]


class RangeTasks(NamedTuple):
    """How the ranges of a batch are read: the tasks' ranges, and what decodes them.

    ``kinds``: the table of each own topic. ``rows`` counts the records.
    """

    read: ReadRanges
    tasks: Sequence[_Task]
    kinds: Mapping[str, str]
    buckets: int
    rows: Accumulator[int]

    def records(self, ranges: _Ranges) -> Iterator[pa.RecordBatch | AnswerRecords]:
        """Read the records of ranges; what is pending of these changes."""
        for partition, found in self.read(ranges):
            self.rows.add(len(found.released) + len(found.logged.records))
            if found.released:
                yield _released(partition, found.released)
            if len(found.logged.records):
                yield AnswerRecords(partition, found.logged)

    def packs(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read tasks, by number, to rows of PACKED: a function for ``mapInArrow``."""
        for batch in numbers:
            for number in batch.column("id").to_pylist():
                ranges = ranges_of_task(self.tasks[number])
                yield from pack_records(self.kinds, self.buckets, self.records(ranges))
                if (left := left_pending(ranges)) is not None:
                    yield packed_rows(PENDING, [(0, pack([left]))])


def range_tasks(
    read: ReadRanges,
    ranges: Sequence[LogRange],
    pending: Mapping[TopicPartition, bytes],
    most_tasks: int,
    kinds: Mapping[str, str],
    buckets: int,
    rows: Accumulator[int],
) -> RangeTasks:
    """Divide ranges into tasks.

    ``pending``: by partition, what is packed of its open transactions; it stays where no range is
    read.
    """
    asked = {one.partition for one in ranges}
    kept = [
        (LogRange(partition, 0, 0), packed)
        for partition, packed in sorted(pending.items())
        if partition not in asked
    ]
    known = ((one, pending.get(one.partition)) for one in ranges)
    return RangeTasks(read, _tasks([*known, *kept], most_tasks), dict(kinds), buckets, rows)


def read_ranges(spark: SparkSession, tasks: RangeTasks) -> DataFrame:
    """Return rows of PACKED: the records of ranges, and what is pending after them."""
    count = len(tasks.tasks)
    return spark.range(0, count, 1, count).mapInArrow(tasks.packs, PACKED)


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


def ranges_of_task(task: _Task) -> _Ranges:
    """Return a task's ranges with what is pending before them."""
    return [(one, _unpacked(packed, one.partition)) for one, packed in task]


def left_pending(ranges: _Ranges) -> pa.RecordBatch | None:
    """Return what is pending after ranges were read, in PENDING_COMMITS; None without any."""
    left = [(*one.partition, _packed(pending)) for one, pending in ranges if len(pending)]
    if not left:
        return None
    arrays = [
        pa.array(column, field.type)
        for column, field in zip(zip(*left, strict=True), _PENDING_ROWS, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=_PENDING_ROWS)


def _released(partition: TopicPartition, commits: Sequence[PendingCommit]) -> pa.RecordBatch:
    return record_batch(
        partition,
        pa.array([one.offset for one in commits], pa.int64()),
        pa.array([one.at_ms for one in commits], pa.int64()),
        pa.array([one.key for one in commits], pa.binary()),
        pa.array([one.value for one in commits], pa.binary()),
    )


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
