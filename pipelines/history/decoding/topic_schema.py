"""Columns of the tables that the service's own topics become.

Names that end in ``_ms`` are times, in ms since the epoch. ``record`` is the JSON as it was
published (None for a tombstone), so that nothing is lost when the columns grow; ``log_partition``
and ``log_offset`` say where it stands on its topic.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

_BROKERS = ArrayType(IntegerType(), containsNull=False)


class Kind(NamedTuple):
    """A table: its name, its columns, and by which of them it is parted.

    ``bucket`` is the folder within a day, ``group_bucket`` or ``topic_bucket``. Its number is
    that of the first column of ``bucket_by`` that a row has a value in, or of "" if none has.
    """

    table: str
    columns: StructType
    bucket: str
    bucket_by: tuple[str, ...]


def _columns(**columns: DataType) -> StructType:
    placed = {
        **columns,
        "record": StringType(),
        "log_partition": IntegerType(),
        "log_offset": LongType(),
    }
    return StructType([StructField(name, kind) for name, kind in placed.items()])


#: The ends of a partition's log; no offsets where the partition is gone.
END_OFFSETS = Kind(
    "end_offsets",
    _columns(
        as_of_ms=LongType(),
        topic=StringType(),
        partition=IntegerType(),
        present=BooleanType(),
        start_offset=LongType(),
        last_stable_offset=LongType(),
        end_offset=LongType(),
        readable_end_offset=LongType(),
    ),
    "topic_bucket",
    ("topic",),
)

#: What became of movements, of tasks (``group`` to ``lag``) and of partitions (``topic`` to
#: ``to_replicas``, brokers).
MOVEMENTS = Kind(
    "movements",
    _columns(
        as_of_ms=LongType(),
        event=StringType(),
        movement_kind=StringType(),
        group=StringType(),
        generation=IntegerType(),
        plan=StringType(),
        decision_id=StringType(),
        task=StringType(),
        from_process=StringType(),
        to_process=StringType(),
        reason=StringType(),
        lag=LongType(),
        topic=StringType(),
        partition=IntegerType(),
        from_replicas=_BROKERS,
        to_replicas=_BROKERS,
        dropped_why=StringType(),
    ),
    "group_bucket",
    ("group", "topic"),
)

#: Recommendations. The time is that of the generation; copies are those of state to build, offsets
#: those to restore for them, seconds until the group is balanced. ``leader_identical`` is None
#: where nobody knows. ``processes`` and ``movements`` are numbers of them.
DECISIONS = Kind(
    "decisions",
    _columns(
        as_of_ms=LongType(),
        group=StringType(),
        present=BooleanType(),
        cluster=StringType(),
        generation=IntegerType(),
        decision_id=StringType(),
        decided_at_ms=LongType(),
        assignor=StringType(),
        processes=IntegerType(),
        movements=IntegerType(),
        copies=LongType(),
        offsets=LongType(),
        rebalances=LongType(),
        seconds=DoubleType(),
        estimated=BooleanType(),
        kafka_copies=LongType(),
        kafka_offsets=LongType(),
        kafka_rebalances=LongType(),
        kafka_seconds=DoubleType(),
        kafka_estimated=BooleanType(),
        leader_assignor=StringType(),
        leader_identical=BooleanType(),
        leader_result=StringType(),
        leader_why=StringType(),
        probing_needed=BooleanType(),
        probing_due_ms=LongType(),
        probing_worthwhile_at_ms=LongType(),
        projected=BooleanType(),
    ),
    "group_bucket",
    ("group",),
)

#: Observations of reassignments, lists of broker ids in Kafka's order. Of a round's observation of
#: the cluster ``topic`` is None. ``offsets_left`` is what the furthest added replica has yet to
#: copy, ``bytes_left`` the sum of what all of them have; None where one wasn't told. ``verdict`` to
#: ``never`` are what the service made of it; records of releases before have none.
REASSIGNMENTS = Kind(
    "reassignments",
    _columns(
        as_of_ms=LongType(),
        topic=StringType(),
        partition=IntegerType(),
        present=BooleanType(),
        ended=BooleanType(),
        unlisted=BooleanType(),
        since_ms=LongType(),
        original=_BROKERS,
        replicas=_BROKERS,
        adding=_BROKERS,
        removing=_BROKERS,
        isr=_BROKERS,
        offline=_BROKERS,
        leader=IntegerType(),
        leader_epoch=IntegerType(),
        offsets_left=LongType(),
        bytes_left=LongType(),
        verdict=StringType(),
        cause=StringType(),
        rate_bytes_per_second=DoubleType(),
        eta_seconds=DoubleType(),
        never=BooleanType(),
    ),
    "topic_bucket",
    ("topic",),
)

#: By table.
KINDS = {kind.table: kind for kind in (END_OFFSETS, MOVEMENTS, DECISIONS, REASSIGNMENTS)}
