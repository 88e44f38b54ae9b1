"""The topics that a group reads, which coordinators wrote before they kept a hash of them instead.

Brokers up to 4.0 wrote this for consumer groups (type 4), early ones of KIP-1071 for streams groups
(type 18); both have one layout, and a later broker's tombstone usually follows.
"""

from __future__ import annotations

from dataclasses import dataclass

from caughtup.models.wire.bounds import bounded, partition
from caughtup.models.wire.reader import FlexibleReader, open_value

_TOPIC_BYTES = 23  # a UUID, a name's length, a partition count, a count and tagged fields
_PARTITION_BYTES = 6  # a number, a count and tagged fields


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic in the coordinator's metadata: ``topic_id`` is 16 bytes.

    ``partition_racks`` has, by partition, the racks of its replicas; empty if unknown.
    """

    topic_id: bytes
    topic_name: str
    num_partitions: int
    partition_racks: dict[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ConsumerGroupPartitionMetadata:
    """The topics of a consumer group (type 4)."""

    topics: tuple[TopicMetadata, ...]


@dataclass(frozen=True, slots=True)
class StreamsGroupPartitionMetadata:
    """The topics of a streams group (type 18)."""

    topics: tuple[TopicMetadata, ...]


def decode_consumer_group_partition_metadata(data: bytes) -> ConsumerGroupPartitionMetadata:
    """Read a value of type 4. Raises DecodeError.

    Source: Kafka's ``ConsumerGroupPartitionMetadataValue``.
    """
    reader = open_value(data, "consumer group partition metadata")
    return ConsumerGroupPartitionMetadata(_topics(reader))


def decode_streams_group_partition_metadata(data: bytes) -> StreamsGroupPartitionMetadata:
    """Read a value of type 18. Raises DecodeError.

    Source: Kafka's ``StreamsGroupPartitionMetadataValue``, before it was removed (KAFKA-17747).
    """
    reader = open_value(data, "streams group partition metadata")
    return StreamsGroupPartitionMetadata(_topics(reader))


def _topics(reader: FlexibleReader) -> tuple[TopicMetadata, ...]:
    topics = reader.array(_topic, _TOPIC_BYTES)
    reader.tagged_fields()
    return topics


def _topic(reader: FlexibleReader) -> TopicMetadata:
    topic_id, name = reader.uuid(), reader.string()
    partitions = bounded("number of partitions", reader.int32(), 0)
    racks = dict(reader.array(_partition, _PARTITION_BYTES))
    reader.tagged_fields()
    return TopicMetadata(topic_id, name, partitions, racks)


def _partition(reader: FlexibleReader) -> tuple[int, tuple[str, ...]]:
    number, racks = partition(reader.int32()), reader.strings()
    reader.tagged_fields()
    return number, racks
