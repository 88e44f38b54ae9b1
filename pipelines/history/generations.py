"""Generations as the history's stream sees them: decided once their end offsets are there.

What a leader decided from is bounded by end offsets seen before the group's record and after it.
Those after it may come with a later batch, so a record waits for end offsets of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

import pyarrow
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)
from pyspark.sql.types import BinaryType, BooleanType, IntegerType, LongType

from caughtup.models.decisions.inputs.gathering import CLOCK_ALLOWANCE_MS
from caughtup.models.parameters import ApplicationParameters
from caughtup.pipelines.generations.job import group_generations, packs_of_looks
from caughtup.pipelines.generations.rows import MetadataRecord, source_topics
from caughtup.pipelines.tables import TIMESTAMP, columns

#: A group's metadata records: the last decided one, and those that wait. ``told`` is whether one
#: was decided; checkpoints have the column by that name.
GROUP_RECORDS = columns(
    partition=IntegerType(),
    offset=LongType(),
    timestamp_ms=LongType(),
    key=BinaryType(),
    value=BinaryType(),
    told=BooleanType(),
)
#: Reads the table of end offsets: of some days, the rows for which something holds.
EndOffsets = Callable[[list[str], pc.Expression], DataFrame]
#: How much later than a record samples must have come: those of all partitions take a while.
_LATER_MS = CLOCK_ALLOWANCE_MS + 10_000
#: Records of this much later mean that no sample will come any more.
_PATIENCE_MS = 10 * 60_000
#: How much older than a record samples may be that are read again to bound it.
_EARLIER_MS = 15 * 60_000


def decidable_until(newest_ms: int, seen_ms: int) -> int:
    """Return up to which time (ms) records can be decided.

    ``newest_ms`` is the newest time of those that wait, ``seen_ms`` that of all samples.
    """
    return max(seen_ms - _LATER_MS, newest_ms - _PATIENCE_MS)


@dataclass(frozen=True, slots=True)
class DecidedGenerations:
    """What a batch decides: rows of the table, if any, and the records that the next one needs."""

    rows: DataFrame | None
    remembered: DataFrame


@dataclass(frozen=True, slots=True)
class GenerationStream:
    """Decides generations batch by batch, with what ``parameters`` say of applications, by group."""

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
        """Decide the generations of which enough is known by now.

        ``records`` and ``remembered`` are of GROUP_RECORDS, ``last`` has the last sample of each
        partition before the batch and after it, ``end_offsets`` reads the table of all, and
        ``until_ms`` is decidable_until's.
        """
        # The log's order decides: a record waits for those before it.
        log = Window.partitionBy("key").orderBy("offset")
        both = records.unionByName(remembered).withColumn(
            "ready", F.col("told") | (F.max("timestamp_ms").over(log) <= until_ms)
        )
        due = both.where("ready AND NOT told")
        (found,) = due.agg(F.count("*"), F.min("timestamp_ms"), F.max("timestamp_ms")).collect()
        count, oldest_ms, latest_ms = found
        rows = None
        if count:
            packs = self._packs(due, last, end_offsets, oldest_ms, latest_ms)
            rows = group_generations(self.spark, both.where("ready"), packs, self.parameters)
        return DecidedGenerations(rows, _remembered(both))

    def _packs(
        self,
        due: DataFrame,
        last: DataFrame,
        end_offsets: EndOffsets,
        oldest_ms: int,
        latest_ms: int,
    ) -> list[bytes]:
        """Pack the samples that may bound what leaders saw: of their sources and changelogs."""
        named = due.select(*MetadataRecord._fields).mapInArrow(_source_topics, "topic string")
        topics = {row["topic"] for row in named.distinct().collect()}
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
        return packs_of_looks(both.where(concerned))


def _remembered(records: DataFrame) -> DataFrame:
    """Keep the last decided record of each group, unless the group is gone, and undecided ones."""
    newest = Window.partitionBy("key", "ready").orderBy(F.col("offset").desc())
    return (
        records.withColumn("age", F.row_number().over(newest))
        .where("NOT ready OR (age = 1 AND value IS NOT NULL)")
        .withColumn("told", F.col("ready"))
        .select(*GROUP_RECORDS.names)
    )


def _source_topics(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
    for batch in batches:
        records = map(MetadataRecord._make, zip(*(c.to_pylist() for c in batch), strict=True))
        names = sorted({name for record in records for name in source_topics(record)})
        yield pyarrow.RecordBatch.from_pydict({"topic": pyarrow.array(names, pyarrow.string())})


def _moment(time_ms: int) -> pyarrow.Scalar:
    return pyarrow.scalar(time_ms, pyarrow.timestamp("ms", "UTC")).cast(TIMESTAMP)


def _days(since_ms: int, until_ms: int) -> list[str]:
    return [str(date.fromordinal(day)) for day in range(_day(since_ms), _day(until_ms) + 1)]


def _day(time_ms: int) -> int:
    return datetime.fromtimestamp(time_ms / 1000, UTC).toordinal()
