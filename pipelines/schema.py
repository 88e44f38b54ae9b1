"""The shapes of the history: what is decoded, what is remembered, what is written.

Columns of the two inner shapes are never null: a null in a column of whole numbers makes pandas
carry it as floating point, and an offset beyond 2**53 would come back changed.
"""

from __future__ import annotations

import zlib

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

#: The topic in which the group coordinators keep commits and group metadata.
OFFSETS_TOPIC = "__consumer_offsets"
#: The topic on which the service publishes end offsets, with the default prefix.
END_OFFSETS_TOPIC = "caughtup-end-offsets"

#: Parts of a day in the table. A trigger writes at most one file to each, so at the default
#: trigger of ten minutes a day is at most 576 files, and one group's day 144 of them.
GROUP_BUCKETS = 4


def group_bucket(group: str) -> int:
    """Give the part of a day's history that a group is in, from 0 to GROUP_BUCKETS - 1."""
    return zlib.crc32(group.encode()) % GROUP_BUCKETS


def _not_null(
    *columns: tuple[str, StringType | IntegerType | LongType | BooleanType],
) -> StructType:
    return StructType([StructField(name, kind, nullable=False) for name, kind in columns])


#: One decoded record: the fields of caughtup.pipelines.events.Event, in their order.
EVENT = _not_null(
    ("kind", StringType()),
    ("topic", StringType()),
    ("partition", IntegerType()),
    ("log_partition", IntegerType()),
    ("log_offset", LongType()),
    ("time_ms", LongType()),
    ("group", StringType()),
    ("present", BooleanType()),
    ("committed", LongType()),
    ("start_offset", LongType()),
    ("last_stable_offset", LongType()),
    ("end_offset", LongType()),
    ("error", StringType()),
)

#: What is remembered of one topic-partition between triggers. Groups are parallel arrays.
STATE = StructType(
    [
        StructField("has_ends", BooleanType()),
        StructField("start_offset", LongType()),
        StructField("last_stable_offset", LongType()),
        StructField("end_offset", LongType()),
        StructField("as_of_ms", LongType()),
        StructField("groups", ArrayType(StringType())),
        StructField("committed", ArrayType(LongType())),
        StructField("commit_times_ms", ArrayType(LongType())),
    ]
)

#: One observed change, as the stateful step gives it: caughtup.pipelines.lag_state.LagRow.
LAG_ROW = StructType(
    [
        StructField("as_of_ms", LongType(), nullable=False),
        StructField("group", StringType(), nullable=False),
        StructField("topic", StringType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
        StructField("committed", LongType()),
        StructField("has_commit", BooleanType(), nullable=False),
        StructField("commit_time_ms", LongType()),
        StructField("end_offset", LongType(), nullable=False),
        StructField("last_stable_offset", LongType(), nullable=False),
        StructField("start_offset", LongType(), nullable=False),
        StructField("lag", LongType(), nullable=False),
        StructField("lag_committed_view", LongType(), nullable=False),
        StructField("source", StringType(), nullable=False),
        StructField("group_bucket", IntegerType(), nullable=False),
    ]
)

#: The columns of the table, in their order; ``date`` (UTC) and ``group_bucket`` are its folders.
LAG_HISTORY = (
    "as_of",
    "group",
    "topic",
    "partition",
    "committed",
    "has_commit",
    "commit_timestamp",
    "end_offset",
    "last_stable_offset",
    "start_offset",
    "lag",
    "lag_committed_view",
    "source",
    "date",
    "group_bucket",
)
