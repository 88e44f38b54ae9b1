"""Decode the records of the service's own topics into columns of tables.

Each row keeps the record as it was published. Fields that later releases add are no error, and stay
in the row's ``record``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.types import StructType, TimestampType

from caughtup.models.offsets import LONG_MAX
from caughtup.models.records import recommendations
from caughtup.models.records.decoding import RefusedError, require_agreement
from caughtup.models.records.end_offsets import read_end_offsets
from caughtup.models.records.fields import or_none
from caughtup.models.records.keys import decode_group
from caughtup.models.records.movements import (
    ConnectMovementRecord,
    PartitionMovementRecord,
    read_movement,
)
from caughtup.models.records.reassignments import (
    CLUSTER_FORMAT,
    CLUSTER_KEY,
    ReassignmentRecord,
    offsets_remaining,
    read_reassignment,
)
from caughtup.models.records.transactions import read_transaction
from caughtup.pipelines.events import KafkaRecord, Undecodable
from caughtup.pipelines.history.decoding.topic_schema import TOPIC_TABLES
from caughtup.pipelines.schema import LATEST_MS
from caughtup.pipelines.spark.arrow import arrow_schema
from caughtup.pipelines.tables import Table, columns

END_OFFSETS = "end_offsets"
Row = tuple[Any, ...]


class OwnColumns(NamedTuple):
    """The decoded records of a topic, in its table's columns, and malformed records."""

    rows: pa.RecordBatch
    undecodable: list[Undecodable]


def own_columns(name: str, batch: pa.RecordBatch) -> OwnColumns:
    """Decode a topic's records; ``batch`` has the columns of ``pipelines.events.KafkaRecord``."""
    fields = (column.to_pylist() for column in batch)
    rows, undecodable = decode_own(name, map(KafkaRecord._make, zip(*fields, strict=True)))
    schema = _arrow(name)
    of_column = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(c, f.type) for c, f in zip(of_column, schema, strict=True)]
    return OwnColumns(pa.RecordBatch.from_arrays(arrays, schema=schema), undecodable)


def own_table(name: str) -> Table:
    """Return the table for a topic's records; ``as_of_ms`` becomes the timestamp ``as_of``."""
    kind = TOPIC_TABLES[name]
    fields = [field for field in kind.columns if field.name != "as_of_ms"]
    shape = StructType([*columns(as_of=TimestampType()).fields, *fields])
    return Table(name, shape, "as_of", kind.bucket, kind.bucket_by)


@cache
def _arrow(name: str) -> pa.Schema:
    return arrow_schema(TOPIC_TABLES[name].columns)


def decode_own(table: str, records: Iterable[KafkaRecord]) -> tuple[list[Row], list[Undecodable]]:
    """Decode records of the topic whose table (one of TOPIC_TABLES) is given.

    Rows have the table's columns, in their order. A tombstone is a row that is not ``present``,
    with its record's time; the topic of movements has none.
    """
    names = TOPIC_TABLES[table].columns.names
    times = [place for place, name in enumerate(names) if name.endswith("_ms")]
    decode = _DECODERS[table]
    rows: list[Row] = []
    undecodable: list[Undecodable] = []
    for record in records:
        try:
            fields = decode(record)
            text = None if record.value is None else record.value.decode()
        except (RefusedError, UnicodeDecodeError) as error:
            undecodable.append(Undecodable(record, " ".join(str(error).split())))
            continue
        missing = (None,) * (len(names) - len(fields) - 3)
        row = (*fields, *missing, text, record.partition, record.offset)
        wrong = [row[at] for at in times if row[at] is not None and not 0 <= row[at] <= LATEST_MS]
        if wrong:
            why = f"bad_time: {wrong[0]} ms is not a time since 1970"
            undecodable.append(Undecodable(record, why))
        else:
            rows.append(row)
    return rows, undecodable


def _end_offsets(record: KafkaRecord) -> Row:
    partition, ends = read_end_offsets(record.key, record.value)
    if ends is None:
        return record.timestamp_ms, *partition, False
    offsets = (ends.start_offset, ends.last_stable_offset, ends.end_offset)
    return ends.as_of_ms, *partition, True, *offsets, ends.readable_end_offset


def _movement(record: KafkaRecord) -> Row:
    of = read_movement(record.key, record.value)
    if isinstance(of, PartitionMovementRecord):
        task = (None,) * 9
        return (
            *(of.at_ms, of.event, of.kind, *task),
            *(of.topic, of.partition, list(of.from_), list(of.to), or_none(of.why)),
        )
    partition = (None,) * 4
    if isinstance(of, ConnectMovementRecord):
        return (
            *(of.at_ms, of.event, of.kind, of.group, of.generation, None, None),
            *(of.name, or_none(of.from_), of.to, of.reason, None),
            *(*partition, or_none(of.why)),
        )
    return (
        *(of.at_ms, of.event, of.kind, of.group, of.generation, of.plan),
        *(of.decision_id, of.task, or_none(of.from_), of.to, of.reason, or_none(of.lag)),
        *(*partition, or_none(of.why)),
    )


def _decision(record: KafkaRecord) -> Row:
    group = decode_group(record.key)
    if record.value is None:
        return record.timestamp_ms, group, False
    decision = recommendations.FORMAT.decode(record.value)
    require_agreement(group, decision.group)
    leader, probing = decision.leader, decision.probing_rebalance
    costs = (
        (cost.copies, or_none(cost.offsets), cost.rebalances, cost.seconds, cost.estimated)
        for cost in (decision.cost, decision.kafka_cost)
    )
    return (
        *(decision.as_of_ms, decision.group, True, decision.cluster, decision.generation),
        *(decision.decision_id, decision.decided_at_ms, decision.assignor),
        *(len(decision.process_ids), len(decision.movements)),
        *(figure for cost in costs for figure in cost),
        leader.assignor,
        None if leader.identical == "unknown" else leader.identical,
        *(leader.result, leader.why),
        *(probing.needed, or_none(probing.due_ms), or_none(probing.worthwhile_at_ms)),
        or_none(decision.inputs.projected) or False,
    )


def _reassignment(record: KafkaRecord) -> Row:
    if record.key == CLUSTER_KEY:
        if record.value is None:
            return record.timestamp_ms, None, None, False
        return CLUSTER_FORMAT.decode(record.value).as_of_ms, None, None, True
    partition, seen = read_reassignment(record.key, record.value)
    if seen is None:
        return record.timestamp_ms, *partition, False
    return (
        *(seen.as_of_ms, *partition, True, seen.ended, seen.unlisted),
        seen.since_ms,
        None if seen.original is None else list(seen.original),
        *map(list, (seen.replicas, seen.adding, seen.removing, seen.isr, seen.offline)),
        *(seen.leader, seen.leader_epoch, offsets_remaining(seen), _bytes_left(seen)),
        *(seen.verdict, seen.cause, seen.rate_bytes_per_second, seen.eta_seconds),
        seen.never if seen.verdict else None,
    )


def _bytes_left(seen: ReassignmentRecord) -> int | None:
    whole = None if seen.leader is None else seen.sizes.get(seen.leader)
    if whole is None or any(replica not in seen.sizes for replica in seen.adding):
        return None
    return min(LONG_MAX, sum(max(0, whole - seen.sizes[replica]) for replica in seen.adding))


def _transaction(record: KafkaRecord) -> Row:
    producer, seen = read_transaction(record.key, record.value)
    if seen is None:
        return record.timestamp_ms, *producer, False
    of = seen.transaction
    return (
        *(seen.as_of_ms, *producer, True, or_none(of.transactional_id), of.state, of.hanging),
        *(or_none(of.started_at_ms), or_none(of.ends_at_ms), or_none(of.last_write_ms)),
        [(*held.topic_partition, held.first_offset) for held in of.partitions],
        list(of.blocked_groups),
        of.records_behind,
    )


_DECODERS: dict[str, Callable[[KafkaRecord], Row]] = {
    "end_offsets": _end_offsets,
    "movements": _movement,
    "decisions": _decision,
    "reassignments": _reassignment,
    "transactions": _transaction,
}
