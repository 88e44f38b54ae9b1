"""The columns and partitions of the history's tables.

``ROOT/TABLE`` is a Delta table, partitioned by day (UTC) and by a bucket, the CRC-32 of a group's
or topic's name modulo the number of buckets. Columns are only ever added; readers name those that
they need, and get null from older files.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)
from pyspark.sql.types import (
    ArrayType,
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

#: The version of the tables' columns and of the state. The job refuses a history of another one.
SCHEMA = 4
GROUP_BUCKET = "group_bucket"
TOPIC_BUCKET = "topic_bucket"
#: The Arrow type of Spark's timestamps.
TIMESTAMP = pa.timestamp("us", "UTC")
_US_A_MS = 1_000


def timestamps(times_ms: pa.Array) -> pa.Array:
    """Convert ms since 1970 to timestamps; null for negative times and those after the year 9999.

    Brokers write -1 for no time, and an expiry after an absurd retention overflows Spark's
    timestamps.
    """
    bounds = pc.min_max(times_ms).as_py()
    if bounds["min"] is not None and not 0 <= bounds["min"] <= bounds["max"] <= LATEST_MS:
        known = pc.and_(pc.greater_equal(times_ms, 0), pc.less_equal(times_ms, LATEST_MS))
        times_ms = pc.if_else(known, times_ms, pa.scalar(None, pa.int64()))
    return pc.multiply(times_ms, _US_A_MS).cast(TIMESTAMP)


def empty(spark: SparkSession, schema: StructType) -> DataFrame:
    """Return a DataFrame without rows. createDataFrame would start a Python worker for that."""
    nothing = (F.lit(None).cast(field.dataType).alias(field.name) for field in schema)
    return spark.range(0).select(*nothing)


def columns(**types: DataType) -> StructType:
    """Return a schema of nullable columns."""
    return StructType([StructField(name, kind) for name, kind in types.items()])


class Table(NamedTuple):
    """A table: its name and columns, its bucket's folder, and the columns that decide the bucket.

    ``time``: the column whose day is the row's folder. A file's rows are sorted by group, topic,
    partition and log offset, as far as the table has them.
    """

    name: str
    columns: StructType
    time: str
    bucket: str = GROUP_BUCKET
    bucket_by: tuple[str, ...] = ("group",)

    @property
    def stored(self) -> StructType:
        """The columns with those that are folders."""
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

#: A cause of a rebalance, as ``models.rebalances.rebalance.Cause``.
_CAUSE = columns(
    kind=StringType(),
    sure=StringType(),
    client=StringType(),
    member=StringType(),
    host=StringType(),
    topic=StringType(),
    why=StringType(),
)
#: Generations and epochs of groups on every protocol, as ``models.state.continued_group`` has them.
REBALANCES = Table(
    "rebalances",
    columns(
        as_of=TimestampType(),
        group=StringType(),
        group_type=StringType(),
        protocol=StringType(),
        generation=IntegerType(),
        after=IntegerType(),
        members=IntegerType(),
        partitions=IntegerType(),
        moved=IntegerType(),
        unfinished=IntegerType(),
        causes=ArrayType(_CAUSE, containsNull=False),
        error=StringType(),
        log_partition=IntegerType(),
        log_offset=LongType(),
    ),
    "as_of",
)

#: Records that cannot be decoded, and ranges of a log that were deleted before they were read. Of a
#: range, ``until_offset`` is the first offset after it, and key and value are null.
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
