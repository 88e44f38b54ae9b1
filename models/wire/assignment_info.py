"""The user data in an assignment by a Kafka Streams leader: tasks, hosts, the next probe."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from caughtup.models.errors import DecodeError
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.offsets import LONG_MAX
from caughtup.models.wire.bounds import LATEST_MS, partition, task_id, time_ms
from caughtup.models.wire.reader import Reader

#: The versions that are decoded, which are all: Kafka Streams has written 11 since 3.2.
VERSIONS = range(1, 12)

_UNKNOWN_VERSION = -1
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
