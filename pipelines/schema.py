"""The shapes of the history: what goes between its stages, what is remembered, what is written."""

from __future__ import annotations

import zlib

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
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
