"""Write a bucket's files: the rows of all tables from a batch's packs and the bucket's state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from caughtup.pipelines.delta.files import NEW_FILES, file_rows, partition_of, write_file
from caughtup.pipelines.delta.store import Store
from caughtup.pipelines.history.buckets.generations import MEMORIES, TOPICS, BucketGenerations
from caughtup.pipelines.history.buckets.lag import STATE, BucketLag, state_folder
from caughtup.pipelines.history.buckets.parts import TablePart, table_parts
from caughtup.pipelines.history.decoding.batches import (
    COMMITS,
    GROUPS,
    OF_GROUPS,
    OF_GROUPS_BEFORE,
    SAMPLES,
    TOPIC_IDS,
    Pack,
    buckets_of,
    rows_by_bucket,
    unpack,
)
from caughtup.pipelines.history.decoding.log_ranges import (
    PENDING,
    RangeTasks,
    left_pending,
    ranges_of_task,
)
from caughtup.pipelines.history.decoding.topic_columns import own_table
from caughtup.pipelines.history.decoding.topic_schema import TOPIC_TABLES
from caughtup.pipelines.tables import QUARANTINE, timestamps

#: Kinds of state: a bucket's last commits, last end offsets, and all groups' records.
LAST_COMMITS, LAST_ENDS, REMEMBERED = "commits", "ends", "groups"
#: Those that each bucket has: they are split again for another number of buckets.
OF_BUCKETS = (LAST_COMMITS, LAST_ENDS, MEMORIES, TOPICS)
_KNOWN = "known-"
KNOWN_COMMITS, KNOWN_ENDS, KNOWN_MEMORIES, KNOWN_TOPICS = (f"{_KNOWN}{kind}" for kind in OF_BUCKETS)
#: An empty pack, which causes a bucket without records to be processed.
TURN = "turn"
#: Files of a batch's group records, which are in no table: only the same batch reads them.
RECORDS = "records"
#: The packs of buckets, by kind.
Held = dict[int, dict[str, list[Pack]]]


@dataclass(frozen=True, slots=True)
class BucketTask:
    """The input of a bucket's task: the tables' store, the batch's number, the number of buckets.

    ``known``: the files of the state. ``rebucket``: the state has another number of buckets, and is
    split again. ``begins``: there is no state of groups' generations yet.
    """

    root: Store
    number: int
    buckets: int
    known: tuple[str, ...]
    rebucket: bool
    begins: bool = False


def new_files(packs: DataFrame, batch: BucketTask) -> DataFrame:
    """Write each bucket's files; return a row of NEW_FILES for each.

    All packs of a bucket have to be in one of Spark's partitions.
    """
    return packs.mapInArrow(partial(write_packs, batch), NEW_FILES)


def new_files_at_once(spark: SparkSession, tasks: RangeTasks, batch: BucketTask) -> DataFrame:
    """Read a batch of one task, and write all buckets' files there, as ``new_files``.

    Nothing is passed between workers then.
    """
    return spark.range(0, 1, 1, 1).mapInArrow(partial(write_ranges, batch, tasks), NEW_FILES)


def bucket_parts(
    bucket: int,
    packs: Mapping[str, Sequence[Pack]],
    buckets: int,
    *,
    rebucket: bool = False,
    begins: bool = False,
) -> Iterator[TablePart]:
    """Yield a bucket's rows of all tables, from packs by kind as in ``batches.packed``.

    Packs of the state have the kinds KNOWN_COMMITS, KNOWN_ENDS, KNOWN_MEMORIES and KNOWN_TOPICS.
    """
    found = {kind: pa.concat_tables(map(unpack, packs[kind])) for kind in sorted(packs)}
    for kind in (KNOWN_COMMITS, KNOWN_MEMORIES) if rebucket else ():
        if kind in found:
            groups = found[kind].column("group").combine_chunks()
            own = pa.array(buckets_of(groups, buckets) == bucket)
            found[kind] = found[kind].filter(own)
    lag = BucketLag(*(found.get(kind) for kind in (COMMITS, SAMPLES, KNOWN_COMMITS, KNOWN_ENDS)))
    yield from lag.tables(bucket)
    yield from lag.remembered(bucket, buckets, rebucket=rebucket)
    kinds = (OF_GROUPS, OF_GROUPS_BEFORE, TOPIC_IDS, KNOWN_MEMORIES, KNOWN_TOPICS)
    generations = BucketGenerations(lag, *map(found.get, kinds))
    yield from generations.tables(bucket)
    yield from generations.remembered(bucket, buckets, whole=rebucket or begins)
    for name in sorted(TOPIC_TABLES.keys() & found.keys()):
        yield from table_parts(own_table(name), bucket, _own_rows(name, found[name]))
    if QUARANTINE.name in found:
        yield from table_parts(QUARANTINE, bucket, found[QUARANTINE.name])
    if GROUPS in found:
        yield TablePart(STATE, state_folder(RECORDS, bucket, buckets), found[GROUPS], ())
    if PENDING in found:
        yield TablePart(STATE, state_folder(PENDING, bucket, buckets), found[PENDING], ())


def write_packs(batch: BucketTask, packs: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the files of rows of PACKED: the function that ``new_files`` maps."""
    held: Held = {}
    for few in packs:
        for row in few.to_pylist():
            held.setdefault(row["bucket"], {}).setdefault(row["kind"], []).append(row["data"])
    yield from write_buckets(batch, held)


def write_ranges(
    batch: BucketTask, tasks: RangeTasks, numbers: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Read and write a batch of one task: the function that ``new_files_at_once`` maps."""
    assert len(tasks.tasks) == 1
    for _ in numbers:
        ranges = ranges_of_task(tasks.tasks[0])
        held = rows_by_bucket(tasks.kinds, tasks.buckets, tasks.records(ranges))
        if (left := left_pending(ranges)) is not None:
            held.setdefault(0, {})[PENDING] = [left]
        if batch.rebucket or batch.begins:
            held |= {number: {} for number in range(batch.buckets) if number not in held}
        yield from write_buckets(batch, held)


def write_buckets(batch: BucketTask, held: Held) -> Iterator[pa.RecordBatch]:
    """Write the files of buckets, from their packs by kind, which are dropped one bucket at a time."""
    for bucket in sorted(held):
        own = held.pop(bucket)
        own.pop(TURN, None)
        own |= _known(batch, bucket, has_groups=OF_GROUPS in own)
        prefix = f"batch-{batch.number:010}-{bucket:02}"
        flags = {"rebucket": batch.rebucket, "begins": batch.begins}
        for part in bucket_parts(bucket, own, batch.buckets, **flags):
            yield file_rows([write_file(batch.root, *part[:2], prefix, *part[2:])])


def _known(batch: BucketTask, bucket: int, *, has_groups: bool) -> dict[str, list[Pack]]:
    """Read a bucket's state, and all end offsets, since any group may read any topic.

    What is remembered of groups is read if there are records of groups.
    """
    found: dict[str, list[Pack]] = {}
    files = batch.root.at(STATE).filesystem()
    for path in batch.known:
        of = partition_of(path)
        own = batch.rebucket or of["kind"] == LAST_ENDS or of["bucket"] == str(bucket)
        wanted = of["kind"] != MEMORIES or has_groups or batch.rebucket
        if own and wanted and of["kind"] != REMEMBERED:
            with files.open_input_stream(path) as stream:
                found.setdefault(f"{_KNOWN}{of['kind']}", []).append(stream.read())
    return found


def _own_rows(name: str, rows: pa.Table) -> pa.Table:
    """Sort rows in their table's order, and add its time column."""
    of = [one for one in ("topic", "partition") if one in rows.column_names]
    names = dict.fromkeys([*TOPIC_TABLES[name].bucket_by, *of, "log_partition", "log_offset"])
    rows = rows.sort_by([(one, "ascending") for one in names])
    return rows.append_column("as_of", timestamps(rows.column("as_of_ms")))
