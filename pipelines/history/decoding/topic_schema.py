"""The columns of the tables made of the service's own topics.

Names that end in ``_ms`` are times, in ms since 1970. ``record`` is the JSON as it was published
(None for a tombstone), so that nothing is lost when columns are added; ``log_partition`` and
``log_offset`` are its place on its topic.
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
_GROUPS = ArrayType(StringType(), containsNull=False)
_PARTITIONS = ArrayType(
    StructType(
        [
            StructField("topic", StringType(), nullable=False),
            StructField("partition", IntegerType(), nullable=False),
            StructField("first_offset", LongType(), nullable=False),
        ]
    ),
    containsNull=False,
)


class TopicTable(NamedTuple):
    """A table: its name, its columns, and how its rows are divided into buckets.

    ``bucket``: the name of the folder within a day, ``group_bucket`` or ``topic_bucket``. A row's
    bucket is that of the first column of ``bucket_by`` with a value, or of "" if none has one.
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


#: End offsets of partitions; no offsets if the partition is gone.
END_OFFSETS = TopicTable(
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

#: Events of movements, of tasks (``group`` to ``lag``) and of partitions (``topic`` to
#: ``to_replicas``, which are broker ids).
MOVEMENTS = TopicTable(
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

#: Recommendations. The time is the generation's. ``copies``: copies of state to build; ``offsets``:
#: offsets to restore for them; ``seconds``: until the group is balanced. ``leader_identical`` is
#: None if unknown. ``processes`` and ``movements`` are counts.
DECISIONS = TopicTable(
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

#: Observations of reassignments; lists of broker ids are in Kafka's order. ``topic`` is None for a
#: round's observation of the cluster. ``offsets_left``: the offsets that the added replica which is
#: furthest behind has yet to copy; ``bytes_left``: the sum over all added replicas; None if one did
#: not answer.
#: ``verdict`` to ``never``: the service's verdict and figures; older releases' records have none.
REASSIGNMENTS = TopicTable(
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

#: Observations of open transactions that hold back a last stable offset. ``partitions``: of those
#: that it holds back; ``records_behind``: the offsets from there to their log ends.
TRANSACTIONS = TopicTable(
    "transactions",
    _columns(
        as_of_ms=LongType(),
        producer_id=LongType(),
        producer_epoch=IntegerType(),
        present=BooleanType(),
        transactional_id=StringType(),
        state=StringType(),
        hanging=BooleanType(),
        started_at_ms=LongType(),
        ends_at_ms=LongType(),
        last_write_ms=LongType(),
        partitions=_PARTITIONS,
        blocked_groups=_GROUPS,
        records_behind=LongType(),
    ),
    "group_bucket",
    ("transactional_id",),
)

#: By table.
TOPIC_TABLES = {
    kind.table: kind for kind in (END_OFFSETS, MOVEMENTS, DECISIONS, REASSIGNMENTS, TRANSACTIONS)
}
