"""The envelope of subscriptions and assignments of consumers in classic groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from caughtup.models.errors import DecodeError
from caughtup.models.ids import TopicPartition
from caughtup.models.wire.bounds import bounded, partition
from caughtup.models.wire.reader import Reader

_NEWEST = 3
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
        rack=reader.nullable_string() if version >= _NEWEST else None,
    )


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
