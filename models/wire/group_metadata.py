"""A classic group's metadata: a completed generation, and the envelope of what its members wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from caughtup.models.errors import DecodeError
from caughtup.models.ids import TopicPartition
from caughtup.models.wire.bounds import bounded, known_time_ms, partition
from caughtup.models.wire.reader import Reader

_NEWEST = 4
_FIRST_FLEXIBLE = 4
# The shortest member is a flexible one: a byte for each of four strings, two byte strings and the
# tagged fields, and two timeouts.
_SMALLEST_MEMBER_BYTES = 15


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a classic group.

    ``subscription`` and ``assignment`` are the embedded protocol's bytes (consumer protocol if the
    group's protocol type is ``consumer``). ``rebalance_timeout_ms`` is -1 in version 0.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A classic group's generation.

    ``state_timestamp_ms`` is -1 if unknown, as before version 2.
    """

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[GroupMember, ...]

    def by_id(self) -> dict[str, GroupMember]:
        """Return the members by id, in their order; of two with one id the last, as for Kafka."""
        return {member.member_id: member for member in self.members}


def decode_group_metadata(data: bytes) -> GroupMetadata:
    """Decode a group's metadata, versions 0 to 4 of ``GroupMetadataValue``.

    Trailing bytes are tolerated, as Kafka's coordinator tolerates them. Raises DecodeError:
    ``unknown_version`` for a later version, ``out_of_range`` for a generation below -1,
    ``bad_time``. A timeout may be any number: only one above 0 is a timeout. Source: Kafka's
    ``GroupMetadataValue``.
    """
    reader = Reader(data)
    version = reader.int16()
    if not 0 <= version <= _NEWEST:
        raise DecodeError("unknown_version", f"group metadata version {version}")
    reader.flexible = version >= _FIRST_FLEXIBLE
    protocol_type = reader.string()
    generation = bounded("generation", reader.int32(), -1)
    protocol = reader.nullable_string()
    leader = reader.nullable_string()
    state_timestamp_ms = known_time_ms(reader.int64()) if version >= 2 else -1
    count = reader.array_length(_SMALLEST_MEMBER_BYTES)
    members = tuple(_decode_member(reader, version) for _ in range(count))
    reader.tagged_fields()
    return GroupMetadata(protocol_type, generation, protocol, leader, state_timestamp_ms, members)


def _decode_member(reader: Reader, version: int) -> GroupMember:
    # Keyword arguments are evaluated as written, and that is the order on the wire.
    member = GroupMember(
        member_id=reader.string(),
        group_instance_id=reader.nullable_string() if version >= 3 else None,
        client_id=reader.string(),
        client_host=reader.string(),
        rebalance_timeout_ms=reader.int32() if version >= 1 else -1,
        session_timeout_ms=reader.int32(),
        subscription=reader.byte_string(),
        assignment=reader.byte_string(),
    )
    reader.tagged_fields()
    return member


_NEWEST_ENVELOPE = 3
_STRING_BYTES = 2  # a string's length alone
_TOPIC_BYTES = 6  # a topic's name length and its partition count
_PARTITION_BYTES = 4


@dataclass(frozen=True, slots=True)
class ConsumerSubscription:
    """A consumer's subscription, which it sends when it joins.

    ``generation`` is -1 if the version lacks it (before 2) or the member had none; ``owned`` is
    empty before version 1, ``rack`` (``client.rack``) None before version 3.
    """

    version: int
    topics: tuple[str, ...]
    user_data: bytes | None
    owned: tuple[TopicPartition, ...]
    generation: int
    rack: str | None


@dataclass(frozen=True, slots=True)
class ConsumerAssignment:
    """A leader's assignment for a consumer. ``partitions`` are in the order of the message."""

    version: int
    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None


def decode_subscription(data: bytes) -> ConsumerSubscription:
    """Decode a subscription; a version after 3 is decoded as 3.

    Later versions only append fields, so trailing bytes are tolerated, as Kafka's own
    ``ConsumerProtocol`` does for newer members. Raises DecodeError (``out_of_range`` for an
    impossible partition or a generation below -1).
    """
    reader = Reader(data)
    version = _version(reader, "subscription")
    topics = tuple(reader.string() for _ in range(reader.array_length(_STRING_BYTES)))
    return ConsumerSubscription(
        version=version,
        topics=topics,
        user_data=reader.nullable_byte_string(),
        owned=tuple(_partitions(reader)) if version >= 1 else (),
        generation=bounded("generation", reader.int32(), -1) if version >= 2 else -1,
        rack=reader.nullable_string() if version >= _NEWEST_ENVELOPE else None,
    )


def decode_subscribed_topics(data: bytes) -> tuple[str, ...]:
    """Decode the topics of a subscription alone. Raises DecodeError."""
    reader = Reader(data)
    _version(reader, "subscription")
    return tuple(reader.string() for _ in range(reader.array_length(_STRING_BYTES)))


def decode_assignment(data: bytes) -> ConsumerAssignment:
    """Decode an assignment; a version after 3 is decoded as 3, with trailing bytes tolerated.

    Raises DecodeError (``out_of_range`` for an impossible partition). Source: Kafka's
    ``ConsumerProtocol``.
    """
    reader = Reader(data)
    return ConsumerAssignment(
        version=_version(reader, "assignment"),
        partitions=tuple(_partitions(reader)),
        user_data=reader.nullable_byte_string(),
    )


def _version(reader: Reader, what: str) -> int:
    version = reader.int16()
    if version < 0:
        raise DecodeError("unknown_version", f"consumer protocol {what} version {version}")
    return version


def _partitions(reader: Reader) -> Iterator[TopicPartition]:
    for _ in range(reader.array_length(_TOPIC_BYTES)):
        topic = reader.string()
        for _ in range(reader.array_length(_PARTITION_BYTES)):
            yield TopicPartition(topic, partition(reader.int32()))
