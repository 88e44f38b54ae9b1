"""The user data in a Kafka Streams member's subscription: its process and its state on disk."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from caughtup.models.errors import DecodeError
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.offsets import LATEST_OFFSET, UNKNOWN_OFFSET_SUM
from caughtup.models.wire.bounds import task_id
from caughtup.models.wire.reader import Reader

#: The versions that are decoded: 1 is the oldest, 7 added offset sums (2.6), 11 is the current one.
VERSIONS = range(1, 12)

_FIRST_WITH_OFFSET_SUMS = 7
_UNKNOWN_VERSION = -1

_SENTINELS = (LATEST_OFFSET, UNKNOWN_OFFSET_SUM)
_PROCESS_ID = struct.Struct(">qq")
_TASK = struct.Struct(">ii")  # subtopology, partition
_OFFSET_SUM = struct.Struct(">iq")  # partition, sum; versions 7 to 9, grouped by subtopology
_TASK_OFFSET_SUM = struct.Struct(">iiqh")  # subtopology, partition, sum, topology's name length
_SUBTOPOLOGY_BYTES = 8  # its number and a count
_TAG_BYTES = 8  # two lengths


@dataclass(frozen=True, slots=True)
class SubscriptionInfo:
    """A Kafka Streams member's user data.

    ``offset_sums``: for each task that the process has state of, the sum of its stores' offsets,
    each plus one; -2 for a running active task, -3 for unknown (models/lag/partition_lag.py).
    Before version 7 members listed only their active and their other tasks, which have -2 and -3
    here, as in Kafka. ``user_end_point`` is ``application.server``, empty without one (and before
    version 2). ``latest_supported_version`` is -1 before version 3. ``unique_field`` changes with
    every join, and is 0 before version 8; ``error_code`` is 0 before version 9, ``client_tags``
    empty before version 11.
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
    """Decode a member's user data, versions 1 to 11.

    Raises DecodeError: ``unknown_version`` for another version (of which only the process id could
    be read), ``named_topology`` for tasks of a named topology, which TaskId can't express,
    ``out_of_range`` for a sum that is neither an offset nor a sentinel, and for an impossible task.
    Source: Kafka Streams' ``SubscriptionInfoData``, and ``TaskManager`` for the sums.
    """
    reader = Reader(data)
    version = reader.int32()
    if version not in VERSIONS:
        raise DecodeError("unknown_version", f"Kafka Streams subscription version {version}")
    latest_supported_version = reader.int32() if version >= 3 else _UNKNOWN_VERSION
    process_id = ProcessId(*reader.unpack(_PROCESS_ID))
    with_offset_sums = version >= _FIRST_WITH_OFFSET_SUMS
    offset_sums = {} if with_offset_sums else _sums_of_named_tasks(reader)
    user_end_point = _text(reader) if version >= 2 else ""
    if with_offset_sums:
        offset_sums.update(_task_offset_sums(reader) if version >= 10 else _offset_sums(reader))
    # Keyword arguments are evaluated as written, and that is the order on the wire.
    return SubscriptionInfo(
        version=version,
        latest_supported_version=latest_supported_version,
        process_id=process_id,
        user_end_point=user_end_point,
        offset_sums=offset_sums,
        unique_field=reader.int8() if version >= 8 else 0,
        error_code=reader.int32() if version >= 9 else 0,
        client_tags=_client_tags(reader) if version >= 11 else {},
    )


def _sums_of_named_tasks(reader: Reader) -> dict[TaskId, int]:
    active = {task_id(*fields): LATEST_OFFSET for fields in reader.rows(_TASK)}
    return active | {task_id(*fields): UNKNOWN_OFFSET_SUM for fields in reader.rows(_TASK)}


def _offset_sums(reader: Reader) -> Iterator[tuple[TaskId, int]]:
    for _ in range(reader.array_length(_SUBTOPOLOGY_BYTES)):
        subtopology = reader.int32()
        for partition, offset_sum in reader.rows(_OFFSET_SUM):
            yield task_id(subtopology, partition), _sum(offset_sum)


def _task_offset_sums(reader: Reader) -> Iterator[tuple[TaskId, int]]:
    # Rows have one width unless a name follows, and a name is an error anyway.
    for subtopology, partition, offset_sum, name_length in reader.rows(_TASK_OFFSET_SUM):
        task = task_id(subtopology, partition)
        if name_length > 0:
            raise DecodeError("named_topology", f"task {task} belongs to a named topology")
        yield task, _sum(offset_sum)


def _sum(number: int) -> int:
    if number < 0 and number not in _SENTINELS:
        raise DecodeError("out_of_range", f"offset sum {number}")
    return number


def _client_tags(reader: Reader) -> dict[str, str]:
    return {_text(reader): _text(reader) for _ in range(reader.array_length(_TAG_BYTES))}


def _text(reader: Reader) -> str:
    return reader.text(reader.array_length(1))
