"""The coordinator's records of a consumer group on the new protocol (KIP-848).

A group's state is the last value of each of its records: its epoch, its members, their target
assignments and their current assignments. Every value is of version 0 and flexible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from caughtup.models.wire.bounds import bounded, epoch, known_time_ms, partitions
from caughtup.models.wire.partition_metadata import (
    ConsumerGroupPartitionMetadata,
    decode_consumer_group_partition_metadata,
)
from caughtup.models.wire.reader import FlexibleReader, open_value, tagged_field
from caughtup.models.wire.record_keys import RecordType

_METADATA_HASH_TAG = 0
_ASSIGNMENT_TIMESTAMP_TAG = 0
_CLASSIC_MEMBER_METADATA_TAG = 0
_ASSIGNMENT_EPOCHS_TAG = 0
_TOPIC_PARTITIONS_BYTES = 18  # a UUID, a count and tagged fields
_CLASSIC_PROTOCOL_BYTES = 3  # two lengths and tagged fields


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadata:
    """A group (type 3).

    ``metadata_hash``, of its topics, is 0 if there is none or it is unknown (before 4.1).
    """

    epoch: int
    metadata_hash: int


@dataclass(frozen=True, slots=True)
class ClassicMemberMetadata:
    """The subscriptions of a member that is still on the classic protocol.

    ``supported_protocols``: the subscription's bytes, by the protocol's name.
    """

    session_timeout_ms: int
    supported_protocols: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class ConsumerGroupMemberMetadata:
    """A member and its subscription (type 5).

    ``classic_member_metadata`` is None unless the member is on the classic protocol.
    """

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None


@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMetadata:
    """The epoch of the members' target assignments (type 6).

    ``assignment_timestamp_ms`` is when they were computed, 0 if unknown (before 4.3).
    """

    assignment_epoch: int
    assignment_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class TopicPartitions:
    """Partitions of a topic, which is given by its id only: 16 bytes.

    ``assignment_epochs`` are the epochs of their assignments, empty if unknown.
    """

    topic_id: bytes
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMember:
    """A member's target assignment (type 7)."""

    topic_partitions: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupCurrentMemberAssignment:
    """A member's current assignment, and the partitions that it must revoke (type 8).

    ``state``: 0 stable, 1 has partitions to revoke, 2 waits for partitions of others, 127 unknown.
    """

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[TopicPartitions, ...]
    partitions_pending_revocation: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupRegularExpression:
    """The topics that match a regular expression (type 16)."""

    topics: tuple[str, ...]
    version: int
    timestamp_ms: int


ConsumerGroupRecord = (
    ConsumerGroupMetadata
    | ConsumerGroupPartitionMetadata
    | ConsumerGroupMemberMetadata
    | ConsumerGroupTargetAssignmentMetadata
    | ConsumerGroupTargetAssignmentMember
    | ConsumerGroupCurrentMemberAssignment
    | ConsumerGroupRegularExpression
)


def decode_consumer_group_record(record_type: RecordType, data: bytes) -> ConsumerGroupRecord:
    """Decode a value of types 3 to 8 or 16.

    Unknown tagged fields and trailing bytes are tolerated, as Kafka's coordinator tolerates them.
    Raises DecodeError (``unknown_version`` for a later version than 0, and ``out_of_range`` or
    ``bad_time`` for impossible numbers), and KeyError for another type. Source: the
    ``ConsumerGroup…Value`` messages of Kafka's group coordinator.
    """
    return _DECODERS[record_type](data)


def _metadata(data: bytes) -> ConsumerGroupMetadata:
    reader = open_value(data, "consumer group metadata")
    group_epoch, fields = epoch(reader.int32()), reader.tagged_fields()
    metadata_hash = tagged_field(fields, _METADATA_HASH_TAG, FlexibleReader.int64)
    return ConsumerGroupMetadata(group_epoch, metadata_hash or 0)


def _member_metadata(data: bytes) -> ConsumerGroupMemberMetadata:
    reader = open_value(data, "consumer group member metadata")
    # Keyword arguments are evaluated as written, and that is the order on the wire.
    return ConsumerGroupMemberMetadata(
        instance_id=reader.nullable_string(),
        rack_id=reader.nullable_string(),
        client_id=reader.string(),
        client_host=reader.string(),
        subscribed_topic_names=reader.strings(),
        subscribed_topic_regex=reader.nullable_string(),
        rebalance_timeout_ms=reader.int32(),
        server_assignor=reader.nullable_string(),
        classic_member_metadata=tagged_field(
            reader.tagged_fields(), _CLASSIC_MEMBER_METADATA_TAG, _classic_member_metadata
        ),
    )


def _classic_member_metadata(reader: FlexibleReader) -> ClassicMemberMetadata | None:
    if reader.is_tagged_null():
        return None
    session_timeout_ms = reader.int32()
    protocols = dict(reader.array(_classic_protocol, _CLASSIC_PROTOCOL_BYTES))
    reader.tagged_fields()
    return ClassicMemberMetadata(session_timeout_ms, protocols)


def _classic_protocol(reader: FlexibleReader) -> tuple[str, bytes]:
    name, subscription = reader.string(), reader.byte_string()
    reader.tagged_fields()
    return name, subscription


def _target_assignment_metadata(data: bytes) -> ConsumerGroupTargetAssignmentMetadata:
    reader = open_value(data, "consumer group target assignment metadata")
    assignment_epoch, fields = epoch(reader.int32()), reader.tagged_fields()
    timestamp_ms = tagged_field(fields, _ASSIGNMENT_TIMESTAMP_TAG, FlexibleReader.int64)
    return ConsumerGroupTargetAssignmentMetadata(assignment_epoch, known_time_ms(timestamp_ms or 0))


def _target_assignment_member(data: bytes) -> ConsumerGroupTargetAssignmentMember:
    reader = open_value(data, "consumer group target assignment of a member")
    topic_partitions = reader.array(_target_partitions, _TOPIC_PARTITIONS_BYTES)
    reader.tagged_fields()
    return ConsumerGroupTargetAssignmentMember(topic_partitions)


def _current_member_assignment(data: bytes) -> ConsumerGroupCurrentMemberAssignment:
    reader = open_value(data, "consumer group current assignment of a member")
    assignment = ConsumerGroupCurrentMemberAssignment(
        member_epoch=epoch(reader.int32()),
        previous_member_epoch=epoch(reader.int32()),
        state=reader.int8(),
        assigned_partitions=reader.array(_current_partitions, _TOPIC_PARTITIONS_BYTES),
        partitions_pending_revocation=reader.array(_current_partitions, _TOPIC_PARTITIONS_BYTES),
    )
    reader.tagged_fields()
    return assignment


def _target_partitions(reader: FlexibleReader) -> TopicPartitions:
    topic_id, numbers = reader.uuid(), partitions(reader.int32s())
    reader.tagged_fields()
    return TopicPartitions(topic_id, numbers)


def _current_partitions(reader: FlexibleReader) -> TopicPartitions:
    topic_id, numbers = reader.uuid(), partitions(reader.int32s())
    epochs = tagged_field(
        reader.tagged_fields(), _ASSIGNMENT_EPOCHS_TAG, FlexibleReader.nullable_int32s
    )
    return TopicPartitions(topic_id, numbers, epochs or ())


def _regular_expression(data: bytes) -> ConsumerGroupRegularExpression:
    reader = open_value(data, "consumer group regular expression")
    topics, version = reader.strings(), bounded("version", reader.int64(), -1)
    timestamp_ms = known_time_ms(reader.int64())
    reader.tagged_fields()
    return ConsumerGroupRegularExpression(topics, version, timestamp_ms)


_DECODERS: dict[RecordType, Callable[[bytes], ConsumerGroupRecord]] = {
    RecordType.CONSUMER_GROUP_METADATA: _metadata,
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: decode_consumer_group_partition_metadata,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: _member_metadata,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: _target_assignment_metadata,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: _target_assignment_member,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current_member_assignment,
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: _regular_expression,
}
