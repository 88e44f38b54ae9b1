"""The shapes of the history: what goes between its stages, what is remembered, what is written."""

from __future__ import annotations

import zlib

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
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


#: Decoded records of one slot, packed, and how many; or, without events, what couldn't be.
PACK = StructType(
    [
        StructField("slot", IntegerType(), nullable=False),
        StructField("events", BinaryType()),
        StructField("commits", LongType(), nullable=False),
        StructField("end_offsets", LongType(), nullable=False),
        StructField("quarantined", LongType(), nullable=False),
        StructField("sample", StringType()),
    ]
)

#: All of a slot's packs in a trigger.
SLOT_EVENTS = StructType(
    [
        StructField("slot", IntegerType(), nullable=False),
        StructField("packs", ArrayType(BinaryType()), nullable=False),
    ]
)

#: What is remembered of a slot between triggers.
STATE = StructType([StructField("partitions", BinaryType())])

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

#: The table; ``date`` (UTC) and ``group_bucket`` are its folders. Readers give it to Spark, which
#: can't tell the columns of a table that has no rows yet.
LAG_HISTORY = StructType(
    [
        StructField("as_of", TimestampType()),
        StructField("group", StringType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("committed", LongType()),
        StructField("has_commit", BooleanType()),
        StructField("commit_timestamp", TimestampType()),
        StructField("end_offset", LongType()),
        StructField("last_stable_offset", LongType()),
        StructField("start_offset", LongType()),
        StructField("lag", LongType()),
        StructField("lag_committed_view", LongType()),
        StructField("source", StringType()),
        StructField("date", DateType()),
        StructField("group_bucket", IntegerType()),
    ]
)
