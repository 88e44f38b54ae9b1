"""What the history does with a batch of records: every table's rows, each written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)
from pyspark.sql.types import StructType

from caughtup.models.parameters import ApplicationParameters
from caughtup.pipelines.generations.schema import GENERATIONS
from caughtup.pipelines.history.buckets.lag import LAST_ENDS, STATE
from caughtup.pipelines.history.buckets.tables import KNOWN, RECORDS, new_files
from caughtup.pipelines.history.decoding.batches import GROUPS, RECORD_COLUMNS, packed, quarantine
from caughtup.pipelines.history.decoding.packs import PACKED, by_bucket, pack
from caughtup.pipelines.history.decoding.topic_columns import END_OFFSETS, own_table
from caughtup.pipelines.history.generations import GROUP_RECORDS, GenerationStream
from caughtup.pipelines.history.lost_ranges import LostRange
from caughtup.pipelines.history.state import HistoryState
from caughtup.pipelines.history.table_writer import TABLES, TableWriter
from caughtup.pipelines.replay.job import slot_keys
from caughtup.pipelines.schema import BUCKETS
from caughtup.pipelines.tables import QUARANTINE, empty

#: Pieces that a batch is decoded in, for each of Spark's cores.
_TASKS_A_CORE = 3
_SAMPLE = "min(format_string('%s-%d offset %d: %s', topic, log_partition, log_offset, why))"


class Quarantined(NamedTuple):
    """How many records of a batch could not be decoded, and one of them with the reason."""

    count: int
    sample: str


@dataclass(slots=True)
class HistoryBatches:
    """Writes batches, one after the other. ``kinds`` says which topic has records of which table."""

    spark: SparkSession
    writer: TableWriter
    state: HistoryState
    kinds: Mapping[str, str]
    parameters: Mapping[str, ApplicationParameters] = field(default_factory=dict)
    _places: Sequence[int] = field(init=False)

    def __post_init__(self) -> None:
        self._places = slot_keys(self.spark, BUCKETS)

    def write(self, batch: int, records: DataFrame, lost: Sequence[LostRange]) -> Quarantined:
        """Write a batch's rows to the tables, and the state for the next one."""
        before = self.state.before(batch)
        # Many small partitions together: each one costs Python a start.
        few = records.coalesce(_TASKS_A_CORE * self.spark.sparkContext.defaultParallelism)
        packs = [packed(few, self.kinds), *self._known(before), *self._lost(lost)]
        staged = self.writer.stage(batch, new_files(self._together(reduce(DataFrame.union, packs))))
        quarantined = self._quarantined(staged)
        self.writer.put(batch, staged)
        changed = {
            folder.removeprefix(STATE): paths[0]
            for folder, paths in staged.items()
            if folder.startswith(STATE)
        }
        changed |= self._generations(batch, staged, before, changed)
        self.state.leave(batch, changed)
        self.writer.done(batch)
        return quarantined

    def _known(self, before: Mapping[str, str]) -> list[DataFrame]:
        """Return the state as packs: end offsets for each bucket, since any group may read any topic."""
        paths = [path for name, path in before.items() if name.startswith(("commits-", "ends-"))]
        if not paths:
            return []
        # A cluster may be set to read on without what is missing, and we would forget it for good.
        whole = {"ignoreMissingFiles": "false", "ignoreCorruptFiles": "false"}
        files = self.spark.read.format("binaryFile").options(**whole).load(paths)
        name = F.split(F.substring_index("path", "/", -1), "-")
        every = F.array(*map(F.lit, range(BUCKETS)))
        own = F.array(name[1].cast("int"))
        buckets = F.when(name[0] == "ends", every).otherwise(own)
        kind = F.concat(F.lit(KNOWN), name[0])
        return [files.select(kind, F.explode(buckets), "content").toDF(*PACKED.names)]

    def _lost(self, lost: Sequence[LostRange]) -> list[DataFrame]:
        """Return ranges of logs that no batch can have, as packs of quarantine."""
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
        parts = by_bucket(rows, rows.column("topic"))
        packs = [(kind, bucket, bytearray(pack([part]))) for bucket, part in parts]
        return [self.spark.createDataFrame(packs, PACKED)]

    def _together(self, packs: DataFrame) -> DataFrame:
        """Bring each bucket's packs to a task of its own."""
        place = F.element_at(F.array(*map(F.lit, self._places)), F.col("bucket") + 1)
        return packs.withColumn("place", place).repartition(BUCKETS, "place").drop("place")

    def _quarantined(self, staged: Mapping[str, Sequence[str]]) -> Quarantined:
        paths = [
            path
            for folder in staged
            if folder.startswith(f"{TABLES}{QUARANTINE.name}/")
            for path in staged[folder]
        ]
        if not paths:
            return Quarantined(0, "")
        return Quarantined(*self.spark.read.parquet(*paths).selectExpr("count(*)", _SAMPLE).first())

    def _generations(
        self,
        batch: int,
        staged: Mapping[str, Sequence[str]],
        before: Mapping[str, str],
        changed: Mapping[str, str],
    ) -> dict[str, str]:
        """Write the generations that can be decided by now; return the groups' new state."""
        found = staged.get(f"{RECORDS}/{GROUPS}", ())
        if not found and "groups" not in before:
            return {}
        remembered = self._read(GROUP_RECORDS, [before["groups"]] if "groups" in before else [])
        if not found and remembered.where("NOT told").isEmpty():
            return {}
        records = self._read(GROUP_RECORDS, found).withColumn("told", F.lit(False))
        ends = [
            path
            for known in (before, changed)
            for name, path in known.items()
            if name.startswith("ends-")
        ]
        table = own_table(END_OFFSETS)
        there = self.writer.files.exists(self.writer.path(table))
        every = self._read(table.stored, [self.writer.path(table)] if there else [])
        stream = GenerationStream(self.spark, self.parameters)
        decided = stream.decide(records, remembered, self._read(LAST_ENDS, ends), every)
        if decided is None:
            return {}
        if decided.rows is not None:
            rows = decided.rows.repartition(BUCKETS, GENERATIONS.bucket)
            self.writer.write(GENERATIONS, batch, rows.sortWithinPartitions("group", "log_offset"))
        return {"groups": self.writer.aside(batch, "groups", decided.remembered)}

    def _read(self, schema: StructType, paths: Sequence[str]) -> DataFrame:
        return (
            self.spark.read.schema(schema).parquet(*paths) if paths else empty(self.spark, schema)
        )
