"""The tables of the history: their columns, and the folders that a query needs to look into.

``ROOT/TABLE`` is a table in Delta Lake, parted by day (UTC) and by the bucket that the CRC-32 of
a group's or topic's name leaves. Columns are only ever added; readers name those that they want,
and find nulls where a file is older.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from caughtup.pipelines.schema import LATEST_MS

#: Grows with the tables' columns and with what is remembered beside the checkpoint; a history of
#: another release than ours is not ours to write.
SCHEMA = 4
GROUP_BUCKET = "group_bucket"
TOPIC_BUCKET = "topic_bucket"
#: What Spark takes for a timestamp, and writes as one that every reader knows.
TIMESTAMP = pa.timestamp("us", "UTC")


def timestamps(times_ms: pa.Array) -> pa.Array:
    """Make timestamps of ms since the epoch; null of what is no time before the year 10000.

    Brokers write -1 where there is none, and what an absurd retention makes of an expiry
    overflows Spark's timestamps.
    """
    known = pc.and_(pc.greater_equal(times_ms, 0), pc.less_equal(times_ms, LATEST_MS))
    times = pc.if_else(known, times_ms, pa.scalar(None, pa.int64()))
    return times.cast(pa.timestamp("ms", "UTC")).cast(TIMESTAMP)


def empty(spark: SparkSession, schema: StructType) -> DataFrame:
    """Make a frame without rows. One of createDataFrame would start Python to make none."""
    nothing = (F.lit(None).cast(field.dataType).alias(field.name) for field in schema)
    return spark.range(0).select(*nothing)


def columns(**types: DataType) -> StructType:
    """Make a schema of columns that may all be null."""
    return StructType([StructField(name, kind) for name, kind in types.items()])


class Table(NamedTuple):
    """A table: its name, its own columns, its bucket's folder and the columns that decide it.

    ``time`` is the column whose day a row is filed under. In a file the rows of a group stand
    together, by topic and partition, in the order of their log (of a topic-partition, likewise).
    """

    name: str
    columns: StructType
    time: str
    bucket: str = GROUP_BUCKET
    bucket_by: tuple[str, ...] = ("group",)

    @property
    def stored(self) -> StructType:
        """The columns with those that are folders, for readers of a table that may be empty."""
        folders = columns(**{"date": DateType(), self.bucket: IntegerType()})
        return StructType([*self.columns.fields, *folders.fields])


COMMITS = Table(
    "commits",
    columns(
        commit_timestamp=TimestampType(),
        group=StringType(),
        topic=StringType(),
        partition=IntegerType(),
        present=BooleanType(),
        committed=LongType(),
        leader_epoch=IntegerType(),
        metadata=StringType(),
        expire_timestamp=TimestampType(),
        topic_id=BinaryType(),
        record_timestamp=TimestampType(),
        log_partition=IntegerType(),
        log_offset=LongType(),
    ),
    "commit_timestamp",
)

LAG = Table(
    "lag",
    columns(
        as_of=TimestampType(),
        group=StringType(),
        topic=StringType(),
        partition=IntegerType(),
        committed=LongType(),
        has_commit=BooleanType(),
        commit_timestamp=TimestampType(),
        end_offset=LongType(),
        last_stable_offset=LongType(),
        start_offset=LongType(),
        lag=LongType(),
        lag_committed_view=LongType(),
        source=StringType(),
    ),
    "as_of",
)

#: Records that can't be decoded, whole, and ranges of a log that were gone before they were read:
#: of those ``until_offset`` is the first that was there again, and there is neither key nor value.
QUARANTINE = Table(
    "quarantine",
    columns(
        seen=TimestampType(),
        topic=StringType(),
        log_partition=IntegerType(),
        log_offset=LongType(),
        until_offset=LongType(),
        record_timestamp=TimestampType(),
        key=BinaryType(),
        value=BinaryType(),
        why=StringType(),
    ),
    "seen",
    TOPIC_BUCKET,
    ("topic",),
)
