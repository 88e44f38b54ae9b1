"""The records that catch-up rates are made of, and the records that they are.

An application reports a copy's lags on ``caughtup-task-positions``; the service's probe publishes
ends on ``caughtup-end-offsets``. Keys and values of all three are JSON.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import msgspec

from caughtup.models.catch_up_rates import RateWindow
from caughtup.models.errors import CaughtupError
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.pipelines.rate_state import Rates

#: The ``schema`` of the records read, and of those written.
SCHEMA = 1
#: A role in which a copy has nothing to catch up.
_RUNNING = "active"
#: By how much clocks may differ: what is later than its record by more is a mistake, and would
#: make everything else look long gone. In ms.
_CLOCKS_DIFFER_MS = 10 * 60_000


class KafkaRecord(NamedTuple):
    """A record as Kafka has it; the timestamp in ms since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class Reported(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A copy's report: when the broker got it (ms), and lags in offsets by changelog.

    ``lags`` None: it has nothing to catch up any more.
    """

    group: str
    process: str
    task: str
    partition: int
    offset: int
    at_ms: int
    lags: dict[str, int] | None


class Ended(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Where a partition ended at a moment (ms); None: it is gone."""

    topic: str
    partition: int
    offset: int
    at_ms: int
    end: int | None


Event = Reported | Ended

_LARGEST_PARTITION = 2**31 - 1
_Offset = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class _PositionRecord(msgspec.Struct):
    schema: int
    role: str | None = None
    lags: dict[str, _Offset | None] = {}


class _EndOffsetsRecord(msgspec.Struct):
    schema: int
    topic: str
    partition: Annotated[int, msgspec.Meta(ge=0, le=_LARGEST_PARTITION)]
    end_offset: _Offset
    as_of_ms: _Offset


_decode_copy = msgspec.json.Decoder(tuple[str, str, str]).decode
_decode_position = msgspec.json.Decoder(_PositionRecord).decode
_decode_ends = msgspec.json.Decoder(_EndOffsetsRecord).decode


def decode(record: KafkaRecord, positions_topic: str) -> Event | None:
    """Decode a record of one of the two topics; None for a report that tells of no changelog.

    A report that lacks the lag of a changelog counts as none: its sum isn't known. Raises
    CaughtupError ``bad_record`` for anything that isn't of their format.
    """
    try:
        read = _reported if record.topic == positions_topic else _ended
        return read(record)
    except (msgspec.MsgspecError, CaughtupError, ValueError, RecursionError) as error:
        where = f"{record.topic}-{record.partition} offset {record.offset}"
        raise CaughtupError("bad_record", f"{where}: {' '.join(str(error).split())}") from error


def copy_key(group: str, process: str, task: str) -> bytes:
    """Give a copy's key, as caughtup-task-positions has it."""
    return msgspec.json.encode([group, process, task])


def partition_key(partition: TopicPartition) -> bytes:
    """Give a changelog partition's key: two parts, where a copy's has three."""
    return msgspec.json.encode([partition.topic, partition.partition])


def rates_value(names: dict[str, Any], rates: Rates, trigger_seconds: float) -> bytes:
    """Give the value of a record: ``names`` of what, its windows, as of when (ms).

    ``trigger_seconds``: how often there may be news. Of a partition only the growth of its end is
    told. What isn't known is null.
    """
    return msgspec.json.encode(
        {
            "schema": SCHEMA,
            **names,
            "as_of_ms": rates.as_of_ms,
            "trigger_seconds": trigger_seconds,
            "windows": [_window(window, positions="task" in names) for window in rates.windows],
        }
    )


def _window(window: RateWindow, *, positions: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"seconds": window.seconds}
    if positions:
        fields["position_per_second"], fields["spread"], fields["samples"] = window.position
    fields["end_offset_per_second"], fields["end_spread"], fields["end_samples"] = window.end
    return fields


def _reported(record: KafkaRecord) -> Reported | None:
    group, process, task = _decode_copy(record.key or b"")
    partition = TaskId.parse(task).partition
    place = (group, process, task, partition, record.offset, record.timestamp_ms)
    if record.value is None:
        return Reported(*place, None)
    position = _decode_position(record.value)
    _check(position.schema)
    if position.role == _RUNNING:
        return Reported(*place, None)
    lags = {topic: lag for topic, lag in position.lags.items() if lag is not None}
    if not lags or len(lags) < len(position.lags):
        return None
    return Reported(*place, lags)


def _ended(record: KafkaRecord) -> Ended:
    if record.value is None:
        topic, dash, partition = (record.key or b"").decode().rpartition("-")
        digits = partition.isascii() and partition.isdigit()
        if not (topic and dash and digits and int(partition) <= _LARGEST_PARTITION):
            raise ValueError(f"{record.key!r} is not a topic-partition such as orders-3")
        return Ended(topic, int(partition), record.offset, record.timestamp_ms, None)
    ends = _decode_ends(record.value)
    _check(ends.schema)
    if ends.as_of_ms > record.timestamp_ms + _CLOCKS_DIFFER_MS:
        raise ValueError(f"seen at {ends.as_of_ms} ms, but written at {record.timestamp_ms} ms")
    return Ended(ends.topic, ends.partition, record.offset, ends.as_of_ms, ends.end_offset)


def _check(schema: int) -> None:
    if schema != SCHEMA:
        raise ValueError(f"schema {schema}, not {SCHEMA}")
