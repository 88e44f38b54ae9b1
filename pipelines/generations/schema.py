"""The columns of the table of generations, and of a replay's rows."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from caughtup.pipelines.tables import Table

_TEXTS = ArrayType(StringType(), containsNull=False)

#: A stream thread: the offset sums that it reported when it joined, and its assigned tasks.
MEMBER = StructType(
    [
        StructField("member_id", StringType()),
        StructField("client_id", StringType()),
        StructField("host", StringType()),
        StructField("process_id", StringType()),
        StructField("offset_sums", MapType(StringType(), LongType(), valueContainsNull=False)),
        StructField("active", _TEXTS),
        StructField("standby", _TEXTS),
    ]
)


def _struct(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


#: caughtup.pipelines.generations.rows.GenerationRow.
GENERATION_ROW = _struct(
    as_of_ms=LongType(),
    group=StringType(),
    generation=IntegerType(),
    leader=StringType(),
    next_rebalance_ms=LongType(),
    members=ArrayType(MEMBER),
    scenario=StringType(),
    doubts=_TEXTS,
    inferred=_TEXTS,
    assumed=_TEXTS,
    error=StringType(),
    log_partition=IntegerType(),
    log_offset=LongType(),
    group_bucket=IntegerType(),
)

#: The table. ``scenario`` is JSON as ``caughtup assign`` reads it.
GENERATIONS = Table(
    "group_generations",
    StructType(
        [
            StructField("as_of", TimestampType()),
            *GENERATION_ROW.fields[1:4],
            StructField("next_rebalance", TimestampType()),
            *GENERATION_ROW.fields[5:-1],
        ]
    ),
    "as_of",
)
#: With the columns that are folders.
GROUP_GENERATIONS = GENERATIONS.stored

#: A row of a replay: ReplayRow with flat figures, and the decision as JSON.
REPLAY_ROW = _struct(
    group=StringType(),
    generation=IntegerType(),
    as_of_ms=LongType(),
    setting=StringType(),
    doubts=IntegerType(),
    decision=StringType(),
    change=StringType(),
    seconds_until_change=DoubleType(),
    error=StringType(),
    copies_built=LongType(),
    offsets_copied=LongType(),
    rebalances=LongType(),
    seconds=DoubleType(),
    estimated=BooleanType(),
    paced=BooleanType(),
    cold_hand_overs=LongType(),
    avoidable_cold_hand_overs=LongType(),
    active_imbalance=DoubleType(),
    copy_imbalance=DoubleType(),
    balanced=BooleanType(),
    seconds_still=DoubleType(),
    longest_still_seconds=DoubleType(),
)
