"""Write a batch of records to the history's tables, each row once, and decide its generations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)
from pyspark.sql.types import StructType

from caughtup.models.ids import TopicPartition
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.polls.record_batches import LogRange
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines.delta.files import (
    NewFile,
    by_table,
    partition_of,
    read_arrow,
    read_rows,
    write_rows,
)
from caughtup.pipelines.generations.schema import GENERATIONS
from caughtup.pipelines.history.buckets.generations import MEMORIES
from caughtup.pipelines.history.buckets.lag import LAST_ENDS, STATE
from caughtup.pipelines.history.buckets.tables import (
    LAST_ENDS as ENDS,
)
from caughtup.pipelines.history.buckets.tables import (
    OF_BUCKETS,
    RECORDS,
    REMEMBERED,
    TURN,
    BucketTask,
    new_files,
    new_files_at_once,
)
from caughtup.pipelines.history.decoding.batches import (
    PACKED,
    by_bucket,
    pack,
    packed,
    quarantine,
)
from caughtup.pipelines.history.decoding.log_ranges import (
    PENDING,
    PENDING_COMMITS,
    RangeTasks,
    ReadRanges,
    range_tasks,
    read_ranges,
)
from caughtup.pipelines.history.decoding.log_records import RECORD_COLUMNS
from caughtup.pipelines.history.decoding.topic_columns import END_OFFSETS, own_table
from caughtup.pipelines.history.generations import (
    GROUP_RECORDS,
    GenerationStream,
    decidable_until,
)
from caughtup.pipelines.history.lost_ranges import LostRange
from caughtup.pipelines.history.tables import HistoryTables
from caughtup.pipelines.replay.job import slot_keys
from caughtup.pipelines.schema import BUCKETS, buckets_for
from caughtup.pipelines.spark.arrow import arrow_schema
from caughtup.pipelines.tables import QUARANTINE

#: The number of decoding tasks of a batch for each of Spark's cores.
_TASKS_A_CORE = 3


class Quarantined(NamedTuple):
    """The number of malformed records of a batch, and one of them with the reason.

    ``rows``: the number of all records, None if Spark's source counts them.
    """

    records: int
    sample: str
    rows: int | None = None


@dataclass(slots=True)
class HistoryBatches:
    """Writes batches, one after another. ``kinds``: the table of each own topic's records.

    ``parameters``: the settings of applications, by group. ``read``: reads ranges of logs, None if
    Spark's source does.
    """

    spark: SparkSession
    tables: HistoryTables
    kinds: Mapping[str, str]
    parameters: Mapping[str, ApplicationParameters] = field(default_factory=dict)
    read: ReadRanges | None = None
    buckets: int = field(init=False)
    _places: Sequence[int] = field(init=False)

    def __post_init__(self) -> None:
        self.buckets = buckets_for(self.spark.sparkContext.defaultParallelism)
        self._places = slot_keys(self.spark, self.buckets)

    def write(
        self,
        batch: int,
        digest: str,
        records: DataFrame,
        lost: Sequence[LostRange],
        ranges: Sequence[LogRange] = (),
        before: DataFrame | None = None,
    ) -> Quarantined:
        """Write a batch's rows to the tables, and the state for the next batch.

        ``digest``: of the offsets at which the batch ends (``offsets_digest``). ``records`` are
        Spark's, of ``ranges``: if these are read otherwise, Spark reads nothing. A batch that is
        complete already is skipped. ``before``: packs of groups' records from before the batch, if
        ``begins``.
        """
        state = self.tables.state
        if state.is_whole(batch, digest):
            return Quarantined(0, "")
        known = state.paths(*OF_BUCKETS)
        rebucket = any(partition_of(path)["buckets"] != str(self.buckets) for path in known)
        begins = self.begins()
        task = BucketTask(self.tables.root, batch, self.buckets, tuple(known), rebucket, begins)
        rows = self.spark.sparkContext.accumulator(0)
        tasks = None if self.read is None else self._tasks(self.read, ranges, lost, rows)
        if tasks is not None and len(tasks.tasks) == 1 and not lost and before is None:
            files = new_files_at_once(self.spark, tasks, task)
        else:
            packs = [self._packed(records, tasks), *self._lost(lost)]
            if before is not None:
                packs.append(before)
            if rebucket or begins:
                turns = [(TURN, number, bytearray()) for number in range(self.buckets)]
                packs.append(self.spark.createDataFrame(turns, PACKED))
            files = new_files(self._by_bucket_task(reduce(DataFrame.union, packs)), task)
        written = files.collect()
        new = by_table(NewFile(*row) for row in written)
        read, left = _separated(new.pop(STATE, []))
        self.tables.add(batch, new)
        told, replaced = self._generations(batch, read, left)
        replaced.append(PENDING)
        if rebucket:
            replaced += OF_BUCKETS
        self.tables.finish(batch, [*left, *told], replaced, digest)
        self.tables.forget(read)
        quarantined = self._quarantined(new.get(QUARANTINE.name, ()))
        return quarantined if self.read is None else quarantined._replace(rows=rows.value)

    def begins(self) -> bool:
        """Return whether there is no state of groups' generations yet, as after an earlier release."""
        return not self.tables.state.paths(MEMORIES)

    def _packed(self, records: DataFrame, tasks: RangeTasks | None) -> DataFrame:
        if tasks is not None:
            return read_ranges(self.spark, tasks)
        # Small partitions are combined: each one starts a Python worker.
        return packed(records.coalesce(self._most_tasks()), self.kinds, self.buckets)

    def _tasks(
        self,
        read: ReadRanges,
        ranges: Sequence[LogRange],
        lost: Sequence[LostRange],
        rows: Accumulator[int],
    ) -> RangeTasks:
        state = self.tables.state
        pending: dict[TopicPartition, bytes] = {}
        if paths := state.paths(PENDING):
            schema = arrow_schema(PENDING_COMMITS)
            known = read_arrow(self.tables.root.at(STATE), paths, schema).to_table()
            # The ends of transactions may be lost, too.
            gone = {one.partition for one in lost}
            pending = {
                partition: row["value"]
                for row in known.to_pylist()
                if (partition := _partition_of(row)) not in gone
            }
        return range_tasks(
            read, ranges, pending, self._most_tasks(), self.kinds, self.buckets, rows
        )

    def _most_tasks(self) -> int:
        cores = self.spark.sparkContext.defaultParallelism
        # With one core, one task does everything: no rows pass through Spark.
        return 1 if cores == 1 else _TASKS_A_CORE * cores

    def _lost(self, lost: Sequence[LostRange]) -> list[DataFrame]:
        """Return packs of quarantine rows for the ranges of logs that were lost."""
        if not lost:
            return []
        columns = {
            "topic": [one.partition.topic for one in lost],
            "partition": [one.partition.partition for one in lost],
            "offset": [one.start for one in lost],
        }
        records = pa.RecordBatch.from_pylist(
            [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
            schema=RECORD_COLUMNS,
        )
        kind, rows = quarantine(records, [one.why for one in lost], [one.until for one in lost])
        parts = by_bucket(rows, rows.column("topic"), self.buckets)
        packs = [(kind, bucket, bytearray(pack([part]))) for bucket, part in parts]
        return [self.spark.createDataFrame(packs, PACKED)]

    def _by_bucket_task(self, packs: DataFrame) -> DataFrame:
        """Partition packs so that each bucket has a task of its own."""
        place = F.element_at(F.array(*map(F.lit, self._places)), F.col("bucket") + 1)
        return packs.withColumn("place", place).repartition(self.buckets, "place").drop("place")

    def _quarantined(self, files: Sequence[NewFile]) -> Quarantined:
        if not files:
            return Quarantined(0, "")
        place = self.tables.root.at(QUARANTINE.name)
        schema = arrow_schema(QUARANTINE.columns)
        names = ["topic", "log_partition", "log_offset", "why"]
        rows = read_arrow(place, [files[0].path], schema).head(1, columns=names).to_pylist()[0]
        return Quarantined(
            sum(file.rows for file in files), "{}-{} offset {}: {}".format(*rows.values())
        )

    def _generations(
        self, batch: int, found: Sequence[NewFile], left: Sequence[NewFile]
    ) -> tuple[list[NewFile], list[str]]:
        """Write the generations that can be decided; return the new state of groups' records.

        Also returns the kinds of state that it replaces. ``left``: the state that the batch wrote.
        """
        before, new = self.tables.state.paths(REMEMBERED), [file.path for file in found]
        waiting = self._times(new, GROUP_RECORDS, "timestamp_ms")
        waiting += self._times(before, GROUP_RECORDS, "timestamp_ms", ~pc.field("told"))
        if not waiting:
            return [], []
        ends = self.tables.state.paths(ENDS)
        ends += [file.path for file in left if file.partition["kind"] == ENDS]
        seen = self._times(ends, LAST_ENDS, "as_of_ms")
        until_ms = decidable_until(max(waiting), max(seen, default=0))
        if not new and min(waiting) > until_ms:
            return [], []
        remembered, records = (self._state(paths, GROUP_RECORDS) for paths in (before, new))
        stream = GenerationStream(self.spark, self.parameters)
        decided = stream.decide(
            records.withColumn("told", F.lit(False)),
            remembered,
            self._state(ends, LAST_ENDS),
            self._end_offsets,
            until_ms,
        )
        root, prefix = self.tables.root, f"batch-{batch:010}"
        if decided.rows is not None:
            rows = decided.rows.repartition(BUCKETS, GENERATIONS.bucket)
            rows = rows.sortWithinPartitions("group", "log_offset")
            folders = ("date", GENERATIONS.bucket)
            files = write_rows(rows, root, GENERATIONS.name, folders, prefix)
            self.tables.add(batch, {GENERATIONS.name: files})
        folder = {"kind": REMEMBERED, "bucket": 0, "buckets": self.buckets}
        rows = decided.remembered.coalesce(1)
        for name, value in folder.items():
            rows = rows.withColumn(name, F.lit(value))
        return write_rows(rows, root, STATE, tuple(folder), prefix), [REMEMBERED]

    def _end_offsets(self, days: Iterable[str], where: pc.Expression) -> DataFrame:
        table = own_table(END_OFFSETS)
        paths = self.tables[END_OFFSETS].paths(date=list(days))
        return read_rows(self.spark, self.tables.root.at(table.name), paths, table.columns, where)

    def _times(
        self,
        paths: Sequence[str],
        schema: StructType,
        name: str,
        where: pc.Expression | None = None,
    ) -> list[int]:
        """Return the least and the greatest time in files of the state; empty without rows."""
        if not paths:
            return []
        rows = read_arrow(self.tables.root.at(STATE), paths, arrow_schema(schema))
        found = pc.min_max(rows.to_table([name], filter=where).column(name)).as_py()
        return [time for time in found.values() if time is not None]

    def _state(self, paths: Sequence[str], schema: StructType) -> DataFrame:
        return read_rows(self.spark, self.tables.root.at(STATE), paths, schema)


def _partition_of(row: Mapping[str, Any]) -> TopicPartition:
    return TopicPartition(row["topic"] or CONSUMER_OFFSETS, row["partition"])


def _separated(files: Sequence[NewFile]) -> tuple[list[NewFile], list[NewFile]]:
    """Separate a batch's files of group records from those of its state."""
    records = [file for file in files if file.partition["kind"] == RECORDS]
    return records, [file for file in files if file.partition["kind"] != RECORDS]
