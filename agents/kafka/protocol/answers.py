"""Decode brokers' answers to the requests of requests.py.

Every ``decode_`` function raises DecodeError, and nothing else, for bytes that are no such answer.
An answer about thousands of partitions takes tens of milliseconds: decode it in a thread.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from caughtup.models.ids import TopicPartition
from caughtup.models.wire.reader import FlexibleReader, Reader

_OFFSETS_ENTRY = struct.Struct(">ihqq")  # partition, error code, timestamp, offset
_EPOCH_OFFSETS_ENTRY = struct.Struct(">ihqqi")  # … and the leader's epoch
_EPOCH_END_ENTRY = struct.Struct(">hiiq")  # error code, partition, leader epoch, end offset
_LOG_ENTRY = struct.Struct(">iqq?")  # partition, size, offset lag, whether it is a future log
_SPACE = struct.Struct(">qq")  # total and usable bytes
_CONFIG_FLAGS = struct.Struct(">?b?")  # read-only, source, sensitive
_DEFAULT_CONFIG = 5
_NONE = -1


class OngoingReassignments(NamedTuple):
    """The answer to ListPartitionReassignments: replicas, adding and removing by partition."""

    error_code: int
    message: str | None
    reassignments: dict[TopicPartition, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]


class LogDirectory(NamedTuple):
    """A broker's log directory; sizes are None where the answer does not have them."""

    path: str
    error_code: int
    total_bytes: int | None
    usable_bytes: int | None


class LogDirectories(NamedTuple):
    """The answer to DescribeLogDirs: the directories, and the sizes of logs in bytes."""

    error_code: int
    directories: tuple[LogDirectory, ...]
    sizes: dict[TopicPartition, int]


class ResourceConfigs(NamedTuple):
    """The configs of one topic or broker that are not left to their defaults."""

    name: str
    error_code: int
    configs: dict[str, str]


def decode_reassignments(data: bytes) -> OngoingReassignments:
    """Decode the answer to ListPartitionReassignments v0."""
    reader = FlexibleReader(data)
    reader.int32()
    error_code, message = reader.int16(), reader.nullable_string()
    listed = {}
    for topic in _topics(reader, 3):
        for _ in range(reader.array_length(8)):
            partition = TopicPartition(topic, reader.int32())
            listed[partition] = (reader.int32s(), reader.int32s(), reader.int32s())
            reader.tagged_fields()
        reader.tagged_fields()
    return OngoingReassignments(error_code, message, listed)


def decode_alter_reassignments(data: bytes) -> list[tuple[int, str | None]]:
    """Decode the answer to AlterPartitionReassignments v0: all error codes with their messages."""
    reader = FlexibleReader(data)
    reader.int32()
    results = [(reader.int16(), reader.nullable_string())]
    for _ in _topics(reader, 3):
        for _ in range(reader.array_length(8)):
            reader.int32()
            results.append((reader.int16(), reader.nullable_string()))
            reader.tagged_fields()
        reader.tagged_fields()
    return results


def decode_list_offsets(
    data: bytes, version: int = 2
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Decode the answer to ListOffsets v2 or v5: offsets, and error codes of the other partitions."""
    layout = _OFFSETS_ENTRY if version < 4 else _EPOCH_OFFSETS_ENTRY
    reader = Reader(data)
    reader.int32()
    ends: dict[TopicPartition, int] = {}
    errors: dict[TopicPartition, int] = {}
    for topic in _topics(reader, 6):
        for partition, error_code, _, offset, *_ in reader.rows(layout):
            if error_code:
                errors[TopicPartition(topic, partition)] = error_code
            else:
                ends[TopicPartition(topic, partition)] = offset
    return ends, errors


def decode_epoch_ends(data: bytes) -> dict[TopicPartition, int]:
    """Decode the answer to OffsetForLeaderEpoch v3: the epochs' end offsets, -1 for unknown epochs.

    Partitions with an error are left out.
    """
    reader = Reader(data)
    reader.int32()
    ends: dict[TopicPartition, int] = {}
    for topic in _topics(reader, 6):
        for error_code, partition, _, offset in reader.rows(_EPOCH_END_ENTRY):
            if not error_code:
                ends[TopicPartition(topic, partition)] = offset
    return ends


def decode_log_dirs(data: bytes, version: int) -> LogDirectories:
    """Decode the answer to DescribeLogDirs v2 to v4, without future logs (which replace others)."""
    reader = FlexibleReader(data)
    reader.int32()
    error_code = reader.int16() if version >= 3 else 0
    directories = []
    sizes: dict[TopicPartition, int] = {}
    for _ in range(reader.array_length(5)):
        directory_error, path = reader.int16(), reader.string()
        for topic in _topics(reader, 3):
            for _ in range(reader.array_length(_LOG_ENTRY.size)):
                partition, size, _, is_future = reader.unpack(_LOG_ENTRY)
                reader.tagged_fields()
                if not is_future:
                    sizes[TopicPartition(topic, partition)] = size
            reader.tagged_fields()
        total, usable = reader.unpack(_SPACE) if version >= 4 else (_NONE, _NONE)
        reader.tagged_fields()
        directories.append(
            LogDirectory(
                path,
                directory_error,
                None if total == _NONE else total,
                None if usable == _NONE else usable,
            )
        )
    return LogDirectories(error_code, tuple(directories), sizes)


def decode_configs(data: bytes) -> list[ResourceConfigs]:
    """Decode the answer to DescribeConfigs v1."""
    reader = Reader(data)
    reader.int32()
    results = []
    for _ in range(reader.array_length(11)):
        error_code, _ = reader.int16(), reader.nullable_string()
        reader.int8()
        name = reader.string()
        configs = {}
        for _ in range(reader.array_length(11)):
            config, value = reader.string(), reader.nullable_string()
            _, source, _ = reader.unpack(_CONFIG_FLAGS)
            for _ in range(reader.array_length(5)):
                reader.string(), reader.nullable_string(), reader.int8()
            if value and source != _DEFAULT_CONFIG:
                configs[config] = value
        results.append(ResourceConfigs(name, error_code, configs))
    return results


def _topics(reader: Reader, least_bytes: int) -> Iterator[str]:
    """Yield the topic names of an array; the caller reads the rest of each entry."""
    for _ in range(reader.array_length(least_bytes)):
        yield reader.string()
