"""What a Kafka Streams member puts into its subscription: who it is and what it has on disk."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from caughtup.models.errors import DecodeError
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.wire.reader import Reader

#: The versions read here: 7 brought the offset sums (Kafka Streams 2.6), 11 is today's.
VERSIONS = range(7, 12)

_PROCESS_ID = struct.Struct(">qq")
_OFFSET_SUM = struct.Struct(">iq")  # partition, sum; versions 7 to 9, grouped by subtopology
_TASK_OFFSET_SUM = struct.Struct(">iiqh")  # subtopology, partition, sum, topology's name length
_SUBTOPOLOGY_BYTES = 8  # its number and a count
_TAG_BYTES = 8  # two lengths


@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    """A Kafka Streams member's user data.

    ``offset_sums``: per task that the process has state of, the sum of its stores' offsets, each
    plus one; -2 for a running active task, -3 for unknown (models/lag.py). ``user_end_point`` is
    ``application.server``, empty without one. ``unique_field`` changes with every join;
    ``error_code`` is 0 before version 9, ``client_tags`` empty before version 11.
    """

    version: int
    latest_supported_version: int
    process_id: ProcessId
    user_end_point: str
    offset_sums: dict[TaskId, int]
    unique_field: int
    error_code: int
    client_tags: dict[str, str]


def decode_subscription_info(data: bytes) -> SubscriptionInfo:
    """Read a member's user data, versions 7 to 11.

    Raises DecodeError: ``unknown_version`` for another version (a newer member says then only
    who it is), ``named_topology`` for tasks of a named topology, whose ids TaskId can't hold.
    Source: Kafka Streams' ``SubscriptionInfoData``.
    """
    reader = Reader(data)
    version = reader.int32()
    if version not in VERSIONS:
        raise DecodeError("unknown_version", f"Kafka Streams subscription version {version}")
    # Keyword arguments are evaluated as written, and that is the order on the wire.
    return SubscriptionInfo(
        version=version,
        latest_supported_version=reader.int32(),
        process_id=ProcessId(*reader.unpack(_PROCESS_ID)),
        user_end_point=_text(reader),
        offset_sums=dict(_task_offset_sums(reader) if version >= 10 else _offset_sums(reader)),
        unique_field=reader.int8() if version >= 8 else 0,
        error_code=reader.int32() if version >= 9 else 0,
        client_tags=_client_tags(reader) if version >= 11 else {},
    )


def _offset_sums(reader: Reader) -> Iterator[tuple[TaskId, int]]:
    for _ in range(reader.array_length(_SUBTOPOLOGY_BYTES)):
        subtopology = reader.int32()
        for partition, offset_sum in reader.rows(_OFFSET_SUM):
            yield TaskId(subtopology, partition), offset_sum


def _task_offset_sums(reader: Reader) -> Iterator[tuple[TaskId, int]]:
    # Rows have one width unless a name follows, and a name ends the reading anyway.
    for subtopology, partition, offset_sum, name_length in reader.rows(_TASK_OFFSET_SUM):
        task = TaskId(subtopology, partition)
        if name_length > 0:
            raise DecodeError("named_topology", f"task {task} belongs to a named topology")
        yield task, offset_sum


def _client_tags(reader: Reader) -> dict[str, str]:
    return {_text(reader): _text(reader) for _ in range(reader.array_length(_TAG_BYTES))}


def _text(reader: Reader) -> str:
    return reader.text(reader.array_length(1))
