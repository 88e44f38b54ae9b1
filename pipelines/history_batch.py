"""What the history does with a batch of records: every table's rows, each written once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)

from caughtup.models.parameters import ApplicationParameters
from caughtup.pipelines.decode import COMMIT, GROUP, QUARANTINE, decoded
from caughtup.pipelines.generation_schema import GENERATIONS
from caughtup.pipelines.generation_stream import GROUP_RECORDS, GenerationStream
from caughtup.pipelines.history_state import HistoryState
from caughtup.pipelines.lag_rows import LAST_COMMITS, LAST_ENDS, lag_rows, last_commits, last_ends
from caughtup.pipelines.lost_ranges import LostRange
from caughtup.pipelines.own_rows import END_OFFSETS, own_rows, own_shape, own_table
from caughtup.pipelines.table_writer import TableWriter
from caughtup.pipelines.tables import COMMITS, LAG, empty, timestamp
from caughtup.pipelines.tables import QUARANTINE as QUARANTINED

#: What is remembered between batches.
REMEMBERED = {"commits": LAST_COMMITS, "ends": LAST_ENDS, "groups": GROUP_RECORDS}
_LOOKS = own_shape(END_OFFSETS)
#: Pieces that a batch is decoded in, for each of Spark's cores.
_TASKS_A_CORE = 3
_GROUP_RECORD = ("log_partition AS partition", "log_offset AS offset")
_GROUP_RECORD += ("record_time_ms AS timestamp_ms", "key", "value", "false AS told")


class Taken(NamedTuple):
    """What there was in a batch that no table but quarantine has: how many, and one such."""

    quarantined: int
    sample: str


@dataclass(slots=True)
class HistoryBatches:
    """Takes batches, one after the other. ``kinds`` says which topic has records of which table."""

    spark: SparkSession
    writer: TableWriter
    state: HistoryState
    kinds: Mapping[str, str]
    parameters: Mapping[str, ApplicationParameters] = field(default_factory=dict)

    def take(self, batch: int, records: DataFrame, lost: Sequence[LostRange]) -> Taken:
        """Write what a batch says, and leave what the next one needs."""
        with ExitStack() as kept:
            found = _kept(kept, decoded(self._few(records), self.kinds))
            counts = {row["kind"]: row["count"] for row in found.groupBy("kind").count().collect()}
            before = self.state.before(batch)
            changed: dict[str, DataFrame] = {}
            own = {
                name: _kept(kept, own_rows(self._few(found), name))
                for name in sorted(set(self.kinds.values()))
                if counts.get(name)
            }
            for name, rows in own.items():
                table = own_table(name)
                good = rows.where("why IS NULL").withColumn("as_of", F.timestamp_millis("as_of_ms"))
                self.writer.write(table, batch, self.writer.filed(table, good))
            commits = found.where(F.col("kind") == COMMIT)
            if counts.get(COMMIT):
                self._write_commits(batch, commits)
                last = last_commits(commits, before["commits"])
                changed["commits"] = _kept(kept, last)
            ends = before["ends"]
            if END_OFFSETS in own:
                ends = changed["ends"] = _kept(
                    kept, last_ends(own[END_OFFSETS].where("why IS NULL"), before["ends"])
                )
            if changed:
                looks = own.get(END_OFFSETS)
                left = changed.get("commits", before["commits"])
                self._write_lag(batch, commits, looks, before, left)
            groups = self._generations(batch, found, counts.get(GROUP, 0), before, ends)
            if groups is not None:
                changed["groups"] = groups
            taken = self._quarantine(batch, found, counts, own, lost)
            self.state.leave(batch, changed)
            return taken

    def _few(self, records: DataFrame) -> DataFrame:
        """Take many small partitions together: each one costs Python a start."""
        return records.coalesce(_TASKS_A_CORE * self.spark.sparkContext.defaultParallelism)

    def _write_commits(self, batch: int, commits: DataFrame) -> None:
        rows = (
            commits.withColumn("commit_timestamp", timestamp("commit_time_ms"))
            .withColumn("expire_timestamp", timestamp("expire_time_ms"))
            .withColumn("record_timestamp", timestamp("record_time_ms"))
        )
        self.writer.write(COMMITS, batch, self.writer.filed(COMMITS, rows))

    def _write_lag(
        self,
        batch: int,
        commits: DataFrame,
        looks: DataFrame | None,
        before: dict[str, DataFrame],
        left: DataFrame,
    ) -> None:
        if looks is None:
            looks = empty(self.spark, _LOOKS)
        good = looks.where("why IS NULL")
        together = partial(self.writer.together, LAG)
        rows = lag_rows(commits, good, before["commits"], before["ends"], left, together)
        self.writer.write(LAG, batch, rows)

    def _generations(
        self,
        batch: int,
        found: DataFrame,
        count: int,
        before: dict[str, DataFrame],
        ends: DataFrame,
    ) -> DataFrame | None:
        if not count and before["groups"].where("NOT told").isEmpty():
            return None
        records = found.where(F.col("kind") == GROUP).selectExpr(*_GROUP_RECORD)
        stream = GenerationStream(self.spark, self.parameters)
        looks = own_table(END_OFFSETS)
        path = self.writer.path(looks)
        known = ends if ends is before["ends"] else ends.unionByName(before["ends"])
        table = self.spark.read.schema(looks.stored)
        every = (
            table.parquet(path)
            if self.writer.files.exists(path)
            else empty(self.spark, looks.stored)
        )
        decided = stream.take(records, before["groups"], known, every)
        if decided is None:
            return None
        if decided.rows is not None:
            self.writer.write(GENERATIONS, batch, self.writer.filed(GENERATIONS, decided.rows))
        return decided.remembered

    def _quarantine(
        self,
        batch: int,
        found: DataFrame,
        counts: Mapping[str, int],
        own: Mapping[str, DataFrame],
        lost: Sequence[LostRange],
    ) -> Taken:
        broken = [rows.where("why IS NOT NULL") for rows in own.values()]
        if counts.get(QUARANTINE):
            broken.append(found.where(F.col("kind") == QUARANTINE))
        records = [
            rows.withColumn("record_timestamp", timestamp("record_time_ms")).selectExpr(
                *("current_timestamp() AS seen", "log_topic AS topic", "log_partition"),
                *("log_offset", "CAST(NULL AS bigint) AS until_offset"),
                *("record_timestamp", "key", "value", "why"),
            )
            for rows in broken
        ]
        if lost:
            records.append(self._lost(lost))
        if not records:
            return Taken(0, "")
        rows = reduce(DataFrame.unionByName, records).persist()
        try:
            count, first = rows.selectExpr("count(*)", _SAMPLE).first()
            if count:
                self.writer.write(QUARANTINED, batch, self.writer.filed(QUARANTINED, rows))
        finally:
            rows.unpersist()
        return Taken(count, first or "")

    def _lost(self, lost: Sequence[LostRange]) -> DataFrame:
        rows = [(*one.partition, one.start, one.until, one.why) for one in lost]
        shape = (
            "topic string, log_partition int, log_offset bigint, until_offset bigint, why string"
        )
        return self.spark.createDataFrame(rows, shape).selectExpr(
            *("current_timestamp() AS seen", "topic", "log_partition", "log_offset"),
            *("until_offset", "CAST(NULL AS timestamp) AS record_timestamp"),
            *("CAST(NULL AS binary) AS key", "CAST(NULL AS binary) AS value", "why"),
        )


_SAMPLE = "min(format_string('%s-%d offset %d: %s', topic, log_partition, log_offset, why))"


def _kept(stack: ExitStack, frame: DataFrame) -> DataFrame:
    """Compute a frame once, for as long as a batch takes."""
    frame.persist()
    stack.callback(frame.unpersist)
    return frame
