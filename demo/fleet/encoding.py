"""Encode subscriptions, assignments and group metadata, for generated groups only.

In the classic encoding (no varints), which Kafka's clients and brokers use by default.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

_SUBSCRIPTION_VERSION = _ASSIGNMENT_VERSION = 3
_GROUP_METADATA_VERSION = 3
_NO_GENERATION = -1


class EncodedMember(NamedTuple):
    """A member in a group's metadata: time-outs in ms, encoded subscription and assignment."""

    member_id: str
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


def encode_subscription(topics: Iterable[str], user_data: bytes | None) -> bytes:
    """Encode a subscription without owned partitions. Source: ConsumerProtocol, v3."""
    return b"".join(
        (
            int16(_SUBSCRIPTION_VERSION),
            array(map(string, topics)),
            byte_string(user_data),
            array(()),  # owned partitions
            int32(_NO_GENERATION),
            string(None),  # rack
        )
    )


def encode_assignment(topic: str, partitions: Iterable[int], user_data: bytes | None) -> bytes:
    """Encode an assignment of partitions of one topic. Source: ConsumerProtocol, v3."""
    numbers = [int32(partition) for partition in partitions]
    given = [string(topic) + array(numbers)] if numbers else []
    return int16(_ASSIGNMENT_VERSION) + array(given) + byte_string(user_data)


def encode_group_key(group: str) -> bytes:
    """Encode the key of a group's metadata, type 2."""
    return int16(2) + string(group)


def encode_group_metadata(
    generation: int,
    protocol: str | None,
    leader: str | None,
    state_timestamp_ms: int,
    members: Iterable[EncodedMember],
) -> bytes:
    """Encode a group's metadata. Source: GroupMetadataValue, v3.

    Generation 0 is that of a new group without members and protocol.
    """
    return b"".join(
        (
            int16(_GROUP_METADATA_VERSION),
            string("consumer" if generation else ""),
            int32(generation),
            string(protocol),
            string(leader),
            struct.pack(">q", state_timestamp_ms),
            array(map(_member, members)),
        )
    )


def _member(member: EncodedMember) -> bytes:
    return b"".join(
        (
            string(member.member_id),
            string(None),  # no static member
            string(member.client_id),
            string(member.client_host),
            int32(member.rebalance_timeout_ms),
            int32(member.session_timeout_ms),
            byte_string(member.subscription),
            byte_string(member.assignment),
        )
    )


def int16(value: int) -> bytes:
    """Write 16 bits."""
    return struct.pack(">h", value)


def int32(value: int) -> bytes:
    """Write 32 bits."""
    return struct.pack(">i", value)


def string(text: str | None) -> bytes:
    """Write a string, or null."""
    if text is None:
        return int16(-1)
    raw = text.encode()
    return int16(len(raw)) + raw


def byte_string(raw: bytes | None) -> bytes:
    """Write bytes, or null."""
    return int32(-1) if raw is None else int32(len(raw)) + raw


def array(elements: Iterable[bytes]) -> bytes:
    """Write the number of elements, and each element."""
    written = list(elements)
    return int32(len(written)) + b"".join(written)
