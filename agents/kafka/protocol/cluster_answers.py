"""Decode answers about the cluster: API versions, brokers, the quorum, partitions, topics.

answers.py has the answers to the other requests of requests.py. Every ``decode_`` function raises
DecodeError for bytes that are no such answer. The end of the module infers brokers' releases.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from caughtup.agents.kafka.protocol.requests import Key
from caughtup.models.ids import TopicPartition
from caughtup.models.wire.reader import FlexibleReader, Reader, tagged_field

_INT32 = struct.Struct(">i")
_VERSIONS = struct.Struct(">hhh")  # API key, least and greatest version
_METADATA_PARTITION = struct.Struct(">hiii")  # error code, partition, leader, leader epoch
_SUPPORTED, _FINALIZED = 0, 2  # tags
_NONE = -1


class ApiVersions(NamedTuple):
    """The least and greatest version of each request that a broker offers, by API key.

    ``supported`` and ``finalized``: the greatest level of each feature, by name.
    """

    requests: dict[int, tuple[int, int]]
    supported: dict[str, int]
    finalized: dict[str, int]


class Broker(NamedTuple):
    """A registered broker and its address; ``fenced`` is None if the answer does not have it."""

    id: int
    host: str
    port: int
    fenced: bool | None = None


class DescribedCluster(NamedTuple):
    """The answer to DescribeCluster."""

    error_code: int
    controller: int
    brokers: tuple[Broker, ...]


class PartitionInfo(NamedTuple):
    """A partition's replicas, ISR, leader (None for none) and offline replicas, as broker ids."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    leader_epoch: int
    offline: tuple[int, ...]


class DescribedPartitions(NamedTuple):
    """Partitions, topics' error codes, and the first partition of the next page (None: no page)."""

    partitions: dict[TopicPartition, PartitionInfo]
    errors: dict[str, int]
    next_partition: TopicPartition | None = None


def decode_api_versions(data: bytes) -> ApiVersions:
    """Decode the answer to ApiVersions v3; empty if the broker does not support the version."""
    reader = FlexibleReader(data)
    if reader.int16():
        return ApiVersions({}, {}, {})
    requests = {}
    for _ in range(reader.array_length(_VERSIONS.size)):
        key, least, greatest = reader.unpack(_VERSIONS)
        reader.tagged_fields()
        requests[key] = (least, greatest)
    reader.int32()
    tags = reader.tagged_fields()
    supported = tagged_field(tags, _SUPPORTED, _supported_levels)
    finalized = tagged_field(tags, _FINALIZED, _finalized_levels)
    return ApiVersions(requests, supported or {}, finalized or {})


def decode_cluster(data: bytes, version: int) -> DescribedCluster:
    """Decode the answer to DescribeCluster v0 to v2."""
    reader = FlexibleReader(data)
    reader.int32()
    error_code, _ = reader.int16(), reader.nullable_string()
    if version >= 1:
        reader.int8()
    reader.string()
    controller = reader.int32()
    brokers = []
    for _ in range(reader.array_length(11)):
        broker = Broker(reader.int32(), reader.string(), reader.int32())
        reader.nullable_string()
        if version >= 2:
            broker = broker._replace(fenced=reader.int8() != 0)
        reader.tagged_fields()
        brokers.append(broker)
    return DescribedCluster(error_code, controller, tuple(brokers))


def decode_quorum(data: bytes) -> tuple[int, int | None, int | None]:
    """Decode the answer to DescribeQuorum v0: error code, the leader's id, its epoch."""
    reader = FlexibleReader(data)
    if error_code := reader.int16():
        return error_code, None, None
    reader.array_length(1)
    reader.string()
    reader.array_length(1)
    reader.int32()
    error_code, leader, epoch = reader.int16(), reader.int32(), reader.int32()
    return error_code, None if leader == _NONE else leader, epoch


def decode_partitions(data: bytes) -> DescribedPartitions:
    """Decode the answer to DescribeTopicPartitions v0."""
    reader = FlexibleReader(data)
    reader.int32()
    partitions: dict[TopicPartition, PartitionInfo] = {}
    errors = {}
    for _ in range(reader.array_length(24)):
        error_code, topic = reader.int16(), reader.nullable_string() or ""
        if error_code:
            errors[topic] = error_code
        reader.uuid()
        reader.int8()
        for _ in range(reader.array_length(20)):
            reader.int16()
            partition, leader, epoch = reader.int32(), reader.int32(), reader.int32()
            replicas, isr = reader.int32s(), reader.int32s()
            reader.nullable_int32s(), reader.nullable_int32s()
            partitions[TopicPartition(topic, partition)] = PartitionInfo(
                replicas, isr, None if leader == _NONE else leader, epoch, reader.int32s()
            )
            reader.tagged_fields()
        reader.int32()
        reader.tagged_fields()
    next_partition = None
    if not reader.is_null():
        next_partition = TopicPartition(reader.string(), reader.int32())
    return DescribedPartitions(partitions, errors, next_partition)


def decode_metadata(data: bytes) -> tuple[DescribedCluster, DescribedPartitions]:
    """Decode the answer to Metadata v7."""
    reader = Reader(data)
    reader.int32()
    brokers = []
    for _ in range(reader.array_length(12)):
        brokers.append(Broker(reader.int32(), reader.string(), reader.int32()))
        reader.nullable_string()
    reader.nullable_string()
    controller = reader.int32()
    partitions: dict[TopicPartition, PartitionInfo] = {}
    errors = {}
    for _ in range(reader.array_length(9)):
        error_code, topic = reader.int16(), reader.string()
        if error_code:
            errors[topic] = error_code
        reader.int8()
        for _ in range(reader.array_length(26)):
            reader.int16()
            partition, leader, epoch = reader.int32(), reader.int32(), reader.int32()
            replicas, isr, offline = _brokers(reader), _brokers(reader), _brokers(reader)
            partitions[TopicPartition(topic, partition)] = PartitionInfo(
                replicas, isr, None if leader == _NONE else leader, epoch, offline
            )
    return DescribedCluster(0, controller, tuple(brokers)), DescribedPartitions(partitions, errors)


def decode_metadata_topics(data: bytes) -> list[str]:
    """Decode the names of topics without errors from the answer to Metadata v7.

    The partitions, perhaps a million, are skipped without making objects of them.
    """
    reader = Reader(data)
    reader.int32()
    for _ in range(reader.array_length(12)):
        reader.int32(), reader.string(), reader.int32(), reader.nullable_string()
    reader.nullable_string(), reader.int32()
    names = []
    for _ in range(reader.array_length(9)):
        error_code, topic, _ = reader.int16(), reader.string(), reader.int8()
        if not error_code:
            names.append(topic)
        for _ in range(reader.array_length(_METADATA_PARTITION.size)):
            reader.take(_METADATA_PARTITION.size)
            for _ in range(3):
                reader.take(_INT32.size * reader.array_length(_INT32.size))
    return names


def decode_topic_names(data: bytes) -> tuple[int, list[str]]:
    """Decode the answer to ListConfigResources v1: the error code, the topics' names."""
    reader = FlexibleReader(data)
    reader.int32()
    error_code = reader.int16()
    names = []
    for _ in range(reader.array_length(3)):
        names.append(reader.string())
        reader.int8()
        reader.tagged_fields()
    return error_code, names


def _brokers(reader: Reader) -> tuple[int, ...]:
    return tuple(broker for (broker,) in reader.rows(_INT32))


def _supported_levels(reader: FlexibleReader) -> dict[str, int]:
    return {name: greatest for name, _, greatest in _levels(reader)}


def _finalized_levels(reader: FlexibleReader) -> dict[str, int]:
    return {name: greatest for name, greatest, _ in _levels(reader)}


def _levels(reader: FlexibleReader) -> Iterator[tuple[str, int, int]]:
    for _ in range(reader.array_length(6)):
        yield reader.string(), reader.int16(), reader.int16()
        reader.tagged_fields()


FEATURE = "metadata.version"

#: The first level of metadata.version that a release knows. Source: Kafka's ``MetadataVersion``.
_FIRST_LEVELS = (
    (1, (3, 0)),
    (2, (3, 1)),
    (3, (3, 2)),
    (4, (3, 3)),
    (8, (3, 4)),
    (9, (3, 5)),
    (12, (3, 6)),
    (15, (3, 7)),
    (20, (3, 8)),
    (21, (3, 9)),
    (22, (4, 0)),
    (26, (4, 1)),
    (28, (4, 2)),
    (30, (4, 3)),
)
#: The first level of a release that is not in the table.
_UNKNOWN_LEVEL = 31


def release(level: int) -> tuple[int, int] | None:
    """Return the release whose newest metadata.version is ``level``; None for an unknown one."""
    index = bisect_right(_FIRST_LEVELS, level, key=lambda first: first[0])
    if not index or level >= _UNKNOWN_LEVEL:
        return None
    return _FIRST_LEVELS[index - 1][1]


def oldest_release(brokers: Iterable[ApiVersions]) -> tuple[int, int] | None:
    """Return the release of the oldest of these brokers; None if one does not report its level."""
    levels = [broker.supported.get(FEATURE) for broker in brokers]
    known = [level for level in levels if level is not None]
    if not known or len(known) < len(levels):
        return None
    return release(min(known))


def zookeeper_decides(broker: ApiVersions) -> bool:
    """Return whether a broker's controller keeps its state in ZooKeeper.

    Only such brokers offer LeaderAndIsr; there are none since 4.0.
    """
    return Key.LEADER_AND_ISR in broker.requests
