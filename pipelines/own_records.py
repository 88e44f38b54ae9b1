"""Records of the service's own topics as rows of tables, each with the record as it was published.

What a later release adds to a record is no error, and stays in the row's ``record``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import msgspec

from caughtup.models.errors import DecodeError
from caughtup.models.ids import TopicPartition
from caughtup.models.partition_movements import KIND as PARTITION
from caughtup.models.reassignment_look import PartitionLook, offsets_remaining
from caughtup.pipelines.events import Event, Record, Undecodable, decode_events
from caughtup.pipelines.own_formats import (
    ClusterLook,
    Decision,
    Header,
    MovementKind,
    PartitionMovement,
    Reassignment,
    TaskMovement,
)
from caughtup.pipelines.own_schema import KINDS
from caughtup.pipelines.schema import LATEST_MS


class _Numbered(Protocol):
    schema: int


T = TypeVar("T", bound=_Numbered)
Row = tuple[Any, ...]

#: The key of the looks at the cluster, which no partition has.
_CLUSTER_KEY = b"_cluster"
_LARGEST_PARTITION = 2**31 - 1
_decode_header = msgspec.json.Decoder(Header).decode
_decode_kind = msgspec.json.Decoder(MovementKind).decode
_decode_task = msgspec.json.Decoder(TaskMovement).decode
_decode_partition = msgspec.json.Decoder(PartitionMovement).decode
_decode_decision = msgspec.json.Decoder(Decision).decode
_decode_reassignment = msgspec.json.Decoder(Reassignment).decode
_decode_cluster = msgspec.json.Decoder(ClusterLook).decode


def decode_own(table: str, records: Iterable[Record]) -> tuple[list[Row], list[Undecodable]]:
    """Decode records of the topic that one of KINDS' tables is made of.

    Rows have the columns of the kind, in their order. A tombstone is a row that isn't
    ``present``, timed by its record; on the topic of movements there are none.
    """
    names = KINDS[table].columns.names
    times = [place for place, name in enumerate(names) if name.endswith("_ms")]
    decode = _DECODERS[table]
    rows: list[Row] = []
    undecodable: list[Undecodable] = []
    for record in records:
        try:
            fields = decode(record)
            text = None if record.value is None else record.value.decode()
        except (DecodeError, msgspec.MsgspecError, ValueError, RecursionError) as error:
            undecodable.append(Undecodable(record, " ".join(str(error).split())))
            continue
        missing = (None,) * (len(names) - len(fields) - 3)
        row = (*fields, *missing, text, record.partition, record.offset)
        wrong = [row[at] for at in times if row[at] is not None and not 0 <= row[at] <= LATEST_MS]
        if wrong:
            why = f"bad_time: {wrong[0]} ms is no time since 1970"
            undecodable.append(Undecodable(record, why))
        else:
            rows.append(row)
    return rows, undecodable


def _end_offsets(record: Record) -> Row:
    event = _event(record)
    found: Row = (event.time_ms, event.topic, event.partition, event.present)
    if event.present:
        offsets = (event.start_offset, event.last_stable_offset, event.end_offset)
        found = (*found, *offsets, event.readable_end_offset)
    return found


def _movement(record: Record) -> Row:
    if record.value is None:
        raise DecodeError("no_value", "a record without a value, of which movement nobody can tell")
    kind = _read(_decode_kind, record.value, (1,)).kind
    if kind == PARTITION:
        of = _read(_decode_partition, record.value, (1,))
        task = (None,) * 9
        return (
            *(of.at_ms, of.event, of.kind, *task),
            *(of.topic, of.partition, list(of.from_), list(of.to), of.why),
        )
    told = _read(_decode_task, record.value, (1,))
    partition = (None,) * 4
    return (
        *(told.at_ms, told.event, told.kind, told.group, told.generation, told.plan),
        *(told.decision_id, told.task, told.from_, told.to, told.reason, told.lag),
        *(*partition, told.why),
    )


def _decision(record: Record) -> Row:
    if record.value is None:
        if not record.key:
            raise DecodeError("no_key", "neither a key nor a value, of which group nobody can tell")
        return record.timestamp_ms, record.key.decode(), False
    decision = _read(_decode_decision, record.value, (1,))
    leader, probing = decision.leader, decision.probing_rebalance
    costs = (
        (cost.copies, cost.offsets, cost.rebalances, cost.seconds, cost.estimated)
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
        *(probing.needed, probing.due_ms, probing.worthwhile_at_ms, decision.inputs.projected),
    )


def _reassignment(record: Record) -> Row:
    if record.key == _CLUSTER_KEY:
        if record.value is None:
            return record.timestamp_ms, None, None, False
        return _read(_decode_cluster, record.value, (1, 2)).as_of_ms, None, None, True
    if record.value is None:
        event = _event(record)
        return event.time_ms, event.topic, event.partition, False
    seen = _read(_decode_reassignment, record.value, (1, 2))
    return (
        *(seen.as_of_ms, seen.topic, seen.partition, True, seen.ended, seen.unlisted),
        seen.since_ms,
        None if seen.original is None else list(seen.original),
        *map(list, (seen.replicas, seen.adding, seen.removing, seen.isr, seen.offline)),
        *(seen.leader, seen.leader_epoch, _offsets_left(seen), _bytes_left(seen)),
    )


def _offsets_left(seen: Reassignment) -> int | None:
    look = PartitionLook(
        partition=TopicPartition(seen.topic, seen.partition),
        replicas=seen.replicas,
        adding=seen.adding,
        removing=seen.removing,
        isr=seen.isr,
        leader=seen.leader,
        as_of_ms=seen.as_of_ms,
        log_ends=seen.log_ends,
    )
    return offsets_remaining(look)


def _bytes_left(seen: Reassignment) -> int | None:
    whole = None if seen.leader is None else seen.sizes.get(seen.leader)
    if whole is None or any(replica not in seen.sizes for replica in seen.adding):
        return None
    return sum(max(0, whole - seen.sizes[replica]) for replica in seen.adding)


def _event(record: Record) -> Event:
    """Decode end offsets, or the key of any tombstone that a partition is the key of."""
    (found,) = decode_events([record])
    if isinstance(found, Undecodable):
        if record.value is not None:
            _check(_decode_header(record.value).schema, (1,))
        raise msgspec.DecodeError(found.why)
    if found.partition > _LARGEST_PARTITION:
        raise DecodeError("bad_key", f"no topic has a partition {found.partition}")
    return found


def _read(decode: Callable[[bytes], T], value: bytes, schemas: tuple[int, ...]) -> T:
    """Decode a value, unless it is of another release's schema."""
    try:
        found = decode(value)
    except msgspec.ValidationError:
        _check(_decode_header(value).schema, schemas)
        raise
    _check(found.schema, schemas)
    return found


def _check(schema: int, schemas: tuple[int, ...]) -> None:
    if schema not in schemas:
        raise DecodeError("unknown_schema", f"schema {schema}, not {schemas[-1]}")


_DECODERS: dict[str, Callable[[Record], Row]] = {
    "end_offsets": _end_offsets,
    "movements": _movement,
    "decisions": _decision,
    "reassignments": _reassignment,
}
