"""The user data of Kafka Streams: in a member's subscription, and in its leader's assignment.

Followers in Python write it, so that a reader of Kafka Streams groups can read their groups.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from caughtup.models.errors import DecodeError
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.offsets import LATEST_OFFSET, LONG_MAX, UNKNOWN_OFFSET_SUM
from caughtup.models.wire.bounds import LATEST_MS, partition, task_id, time_ms
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
        for number, offset_sum in reader.rows(_OFFSET_SUM):
            yield task_id(subtopology, number), _sum(offset_sum)


def _task_offset_sums(reader: Reader) -> Iterator[tuple[TaskId, int]]:
    # Rows have one width unless a name follows, and a name is an error anyway.
    for subtopology, number, offset_sum, name_length in reader.rows(_TASK_OFFSET_SUM):
        task = task_id(subtopology, number)
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


#: The versions that are decoded, which are all: Kafka Streams has written 11 since 3.2.

_FIRST_WITH_COMMON_VERSION = 3
_FIRST_WITH_HOSTS = 2
_FIRST_WITH_ERROR_CODE = 4
_FIRST_WITH_TOPIC_INDEXES = 5
_FIRST_WITH_STANDBY_HOSTS = 6
_FIRST_WITH_NEXT_REBALANCE = 7
_FIRST_WITH_TOPOLOGY_NAMES = 10
_TASK_ID = struct.Struct(">ii")
_NAMED_TASK_ID = struct.Struct(">iii")  # and the length of its topology's name
_INDEXED_PARTITION = struct.Struct(">ii")  # the topic's index, the partition
_STANDBY_TAIL_BYTES = 4  # a partition count
_PARTITION_BYTES = 6  # a topic's name length and the partition
_TOPIC_BYTES = 6  # an index and a topic's name length
_HOST_BYTES = 10  # a name's length, the port and a count


class HostInfo(NamedTuple):
    """The address at which an instance answers queries (``application.server``)."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class AssignmentInfo:
    """A Kafka Streams member's assignment.

    ``active`` is in the order of the member's partitions sorted by topic and partition. ``standby``
    has every standby task, warm-ups included, with its source partitions. ``next_rebalance_ms`` is
    when this member has to request the next rebalance, by its leader's clock in ms since the epoch:
    0 for at once, None for never; times after the year 9999, from a long interval, are given as its
    end. Fields that a version lacks are -1 (``commonly_supported_version``), 0 (``error_code``),
    None or empty.
    """

    version: int
    commonly_supported_version: int
    active: tuple[TaskId, ...]
    standby: dict[TaskId, tuple[TopicPartition, ...]]
    active_by_host: dict[HostInfo, tuple[TopicPartition, ...]]
    standby_by_host: dict[HostInfo, tuple[TopicPartition, ...]]
    error_code: int
    next_rebalance_ms: int | None


def decode_assignment_info(data: bytes) -> AssignmentInfo:
    """Decode a member's assignment, versions 1 to 11.

    Raises DecodeError: ``unknown_version`` for another version, ``named_topology`` for tasks of a
    named topology, ``bad_reference`` for a topic that the dictionary lacks, ``out_of_range`` for an
    impossible task or partition, ``bad_time``. Source: Kafka Streams' ``AssignmentInfo``.
    """
    reader = Reader(data)
    version = reader.int32()
    if version not in VERSIONS:
        raise DecodeError("unknown_version", f"Kafka Streams assignment version {version}")
    layout = _NAMED_TASK_ID if version >= _FIRST_WITH_TOPOLOGY_NAMES else _TASK_ID
    commonly_supported_version = (
        reader.int32() if version >= _FIRST_WITH_COMMON_VERSION else _UNKNOWN_VERSION
    )
    active = tuple(_task(fields) for fields in reader.rows(layout))
    standby = _standby(reader, layout)
    topics = _topics(reader) if version >= _FIRST_WITH_TOPIC_INDEXES else None
    active_by_host = _partitions_by_host(reader, topics) if version >= _FIRST_WITH_HOSTS else {}
    standby_by_host = (
        _partitions_by_host(reader, topics) if version >= _FIRST_WITH_STANDBY_HOSTS else {}
    )
    error_code = reader.int32() if version >= _FIRST_WITH_ERROR_CODE else 0
    next_rebalance_ms = reader.int64() if version >= _FIRST_WITH_NEXT_REBALANCE else LONG_MAX
    return AssignmentInfo(
        version=version,
        commonly_supported_version=commonly_supported_version,
        active=active,
        standby=standby,
        active_by_host=active_by_host,
        standby_by_host=standby_by_host,
        error_code=error_code,
        next_rebalance_ms=(
            None if next_rebalance_ms == LONG_MAX else time_ms(min(next_rebalance_ms, LATEST_MS))
        ),
    )


def _task(fields: tuple[int, ...]) -> TaskId:
    task = task_id(fields[0], fields[1])
    if len(fields) == 3 and fields[2] > 0:
        raise DecodeError("named_topology", f"task {task} belongs to a named topology")
    return task


def _standby(reader: Reader, layout: struct.Struct) -> dict[TaskId, tuple[TopicPartition, ...]]:
    count = reader.array_length(layout.size + _STANDBY_TAIL_BYTES)
    return {_task(reader.unpack(layout)): tuple(_named_partitions(reader)) for _ in range(count)}


def _named_partitions(reader: Reader) -> Iterator[TopicPartition]:
    for _ in range(reader.array_length(_PARTITION_BYTES)):
        yield TopicPartition(reader.modified_utf(), partition(reader.int32()))


def _topics(reader: Reader) -> dict[int, str]:
    count = reader.array_length(_TOPIC_BYTES)
    return {reader.int32(): reader.modified_utf() for _ in range(count)}


def _partitions_by_host(
    reader: Reader, topics: dict[int, str] | None
) -> dict[HostInfo, tuple[TopicPartition, ...]]:
    """Read each host's partitions, of topics named by index, or by name without ``topics``."""
    hosts: dict[HostInfo, tuple[TopicPartition, ...]] = {}
    for _ in range(reader.array_length(_HOST_BYTES)):
        host = HostInfo(reader.modified_utf(), reader.int32())
        partitions = (
            _named_partitions(reader) if topics is None else _indexed_partitions(reader, topics)
        )
        hosts[host] = tuple(partitions)
    return hosts


def _indexed_partitions(reader: Reader, topics: dict[int, str]) -> Iterator[TopicPartition]:
    for index, number in reader.rows(_INDEXED_PARTITION):
        if index not in topics:
            raise DecodeError("bad_reference", f"no topic has index {index}")
        yield TopicPartition(topics[index], partition(number))


#: The version that is written, that of Kafka Streams 4.3.
VERSION = 11

_HEAD = struct.Struct(">iiqq")  # version, latest supported version, process id
_SUBSCRIPTION_TAIL = struct.Struct(">bii")  # unique field, error code, no client tags
_VERSIONS = struct.Struct(">ii")
_NAMED_TASK = struct.Struct(">iii")  # subtopology, partition, no topology name
_ASSIGNMENT_TAIL = struct.Struct(">iiiiq")  # no topics, no hosts twice, no error, next rebalance
_COUNT = struct.Struct(">i")
_NO_NAME = -1


def encode_subscription_info(
    process: ProcessId, offset_sums: Mapping[TaskId, int], unique_field: int
) -> bytes:
    """Encode a member's user data: its process, and an offset sum or sentinel of each of its tasks.

    Only the lowest eight bits of ``unique_field`` are written; the coordinator rebalances when a
    member joins with other bytes than before, so it changes with every join. Source: Kafka Streams'
    ``SubscriptionInfoData``, version 11.
    """
    unique = (unique_field + 128) % 256 - 128
    sums = (
        _TASK_OFFSET_SUM.pack(*task, offset_sum, _NO_NAME)
        for task, offset_sum in sorted(offset_sums.items())
    )
    return b"".join(
        (
            _HEAD.pack(VERSION, VERSION, *process),
            _COUNT.pack(0),  # no application.server
            _array(sums),
            _SUBSCRIPTION_TAIL.pack(unique, 0, 0),
        )
    )


def encode_assignment_info(
    active: Iterable[TaskId],
    standby: Mapping[TaskId, Iterable[TopicPartition]],
    next_rebalance_ms: int | None,
) -> bytes:
    """Encode a member's assignment: its tasks, and when it shall request the next rebalance.

    ``active`` is in the order of the member's partitions, ``standby`` has the source partitions of
    each task; ``next_rebalance_ms`` is 0 for at once and None for never. Source: Kafka Streams'
    ``AssignmentInfo``, version 11.
    """
    return b"".join(
        (
            _VERSIONS.pack(VERSION, VERSION),
            _array(_NAMED_TASK.pack(*task, 0) for task in active),
            _array(
                _NAMED_TASK.pack(*task, 0) + _array(_partition(one) for one in partitions)
                for task, partitions in sorted(standby.items())
            ),
            _ASSIGNMENT_TAIL.pack(
                0, 0, 0, 0, LONG_MAX if next_rebalance_ms is None else next_rebalance_ms
            ),
        )
    )


def _partition(one: TopicPartition) -> bytes:
    # Kafka's topic names are ASCII, for which Java's modified UTF-8 equals UTF-8.
    name = one.topic.encode("ascii")
    return struct.pack(">H", len(name)) + name + _COUNT.pack(one.partition)


def _array(elements: Iterable[bytes]) -> bytes:
    written = list(elements)
    return _COUNT.pack(len(written)) + b"".join(written)
