"""Decide generations in the history's stream, once their end offsets are known.

A leader's end offsets are bounded by samples before the group's record and after it. Those after it
may come with a later batch, so a record waits for samples of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

import pyarrow
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)
from pyspark.sql.types import BinaryType, BooleanType, IntegerType, LongType, StringType

from caughtup.models.decisions.inputs.gathering import CLOCK_ALLOWANCE_MS
from caughtup.models.parameters import ApplicationParameters
from caughtup.pipelines.generations.job import group_generations, packs_of_samples
from caughtup.pipelines.generations.rows import MetadataRecord, source_topics
from caughtup.pipelines.tables import TIMESTAMP, columns

#: A group's metadata records: the last decided one, and those that wait. ``told``: whether a record
#: is decided (checkpoints have that column name).
GROUP_RECORDS = columns(
    partition=IntegerType(),
    offset=LongType(),
    timestamp_ms=LongType(),
    key=BinaryType(),
    value=BinaryType(),
    told=BooleanType(),
)
#: The source topics of groups' records, null without any, and the records' times.
_CONCERNED = columns(topic=StringType(), timestamp_ms=LongType())
#: Reads the table of end offsets: the rows of some days that match an expression.
EndOffsets = Callable[[list[str], pc.Expression], DataFrame]
#: A record can be decided once there are samples that are newer by this: a listing takes a while.
_LATER_MS = CLOCK_ALLOWANCE_MS + 10_000
#: A record is decided in any case once there are records that are newer by this.
_PATIENCE_MS = 10 * 60_000
#: Samples that are older than a record by at most this are read again to bound it.
_EARLIER_MS = 15 * 60_000


def decidable_until(newest_ms: int, seen_ms: int) -> int:
    """Return the time (ms) up to which records can be decided.

    ``newest_ms``: the newest time of waiting records. ``seen_ms``: the newest time of samples.
    """
    return max(seen_ms - _LATER_MS, newest_ms - _PATIENCE_MS)


@dataclass(frozen=True, slots=True)
class DecidedGenerations:
    """The result of a batch: rows of the table, if any, and the records that the next one needs."""

    rows: DataFrame | None
    remembered: DataFrame


@dataclass(frozen=True, slots=True)
class GenerationStream:
    """Decides generations batch by batch; ``parameters``: settings of applications, by group."""

    spark: SparkSession
    parameters: Mapping[str, ApplicationParameters]

    def decide(
        self,
        records: DataFrame,
        remembered: DataFrame,
        last: DataFrame,
        end_offsets: EndOffsets,
        until_ms: int,
    ) -> DecidedGenerations:
        """Decide the generations up to ``until_ms`` (see ``decidable_until``).

        ``records`` and ``remembered`` have the columns of GROUP_RECORDS. ``last``: the last sample
        of each partition before the batch and after it. ``end_offsets`` reads the table of samples.
        """
        # A record waits for those before it in the log.
        log = Window.partitionBy("key").orderBy("offset")
        both = records.unionByName(remembered).withColumn(
            "ready", F.col("told") | (F.max("timestamp_ms").over(log) <= until_ms)
        )
        due = both.where("ready AND NOT told").select(*MetadataRecord._fields)
        times = (F.min("timestamp_ms").alias("oldest"), F.max("timestamp_ms").alias("latest"))
        found = due.mapInArrow(_concerned, _CONCERNED).groupBy("topic").agg(*times).collect()
        rows = None
        if found:
            packs = self._packs(
                {row["topic"] for row in found} - {None},
                last,
                end_offsets,
                min(row["oldest"] for row in found),
                max(row["latest"] for row in found),
            )
            rows = group_generations(self.spark, both.where("ready"), packs, self.parameters)
        return DecidedGenerations(rows, _remembered(both))

    def _packs(
        self,
        topics: set[str],
        last: DataFrame,
        end_offsets: EndOffsets,
        oldest_ms: int,
        latest_ms: int,
    ) -> list[bytes]:
        """Pack the samples that may bound leaders' end offsets: of source topics and changelogs."""
        for given in self.parameters.values():
            topics.update(name for names in (given.changelogs or {}).values() for name in names)
        concerned = F.col("topic").isin(*sorted(topics)) | F.col("topic").endswith("-changelog")
        since_ms, until_ms = oldest_ms - _EARLIER_MS, latest_ms + _PATIENCE_MS
        time, (since, until) = pc.field("as_of"), map(_moment, (since_ms, until_ms))
        rows = end_offsets(_days(since_ms, until_ms), (time >= since) & (time <= until))
        near = rows.withColumn("as_of_ms", F.unix_millis("as_of"))
        known = last.withColumn("present", F.lit(True)).withColumn("log_offset", F.lit(-1))
        wanted = (
            *("topic", "partition", "present", "start_offset", "last_stable_offset"),
            *("end_offset", "readable_end_offset", "as_of_ms", "log_offset"),
        )
        both = near.select(*wanted).unionByName(known.select(*wanted))
        return packs_of_samples(both.where(concerned))


def _remembered(records: DataFrame) -> DataFrame:
    """Return undecided records, and the last decided one of each group that still exists."""
    newest = Window.partitionBy("key", "ready").orderBy(F.col("offset").desc())
    return (
        records.withColumn("age", F.row_number().over(newest))
        .where("NOT ready OR (age = 1 AND value IS NOT NULL)")
        .withColumn("told", F.col("ready"))
        .select(*GROUP_RECORDS.names)
    )


def _concerned(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records that make rows of the table, by source topic; nothing of other groups'."""
    for batch in batches:
        rows = [
            (topic, record.timestamp_ms)
            for record in map(
                MetadataRecord._make, zip(*(c.to_pylist() for c in batch), strict=True)
            )
            if (topics := source_topics(record)) is not None
            for topic in topics or (None,)
        ]
        topic, time = zip(*rows, strict=True) if rows else ((), ())
        yield pyarrow.RecordBatch.from_arrays(
            [pyarrow.array(topic, pyarrow.string()), pyarrow.array(time, pyarrow.int64())],
            names=_CONCERNED.names,
        )


def _moment(time_ms: int) -> pyarrow.Scalar:
    return pyarrow.scalar(time_ms, pyarrow.timestamp("ms", "UTC")).cast(TIMESTAMP)


def _days(since_ms: int, until_ms: int) -> list[str]:
    return [str(date.fromordinal(day)) for day in range(_day(since_ms), _day(until_ms) + 1)]


def _day(time_ms: int) -> int:
    return datetime.fromtimestamp(time_ms / 1000, UTC).toordinal()
