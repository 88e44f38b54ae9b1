"""What consumers and group coordinators write about groups, for generated groups only.

Classic encodings (no varints), as Kafka's clients and brokers write them by default.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

_SUBSCRIPTION_VERSION = _ASSIGNMENT_VERSION = 3
_GROUP_METADATA_VERSION = 3
_NO_GENERATION = -1


class EncodedMember(NamedTuple):
    """A member as a group's metadata has it: timeouts in ms, what it said and was given as bytes."""

    member_id: str
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


def encode_subscription(topics: Iterable[str], user_data: bytes | None) -> bytes:
    """Write what a consumer says when it joins, owning nothing. Source: ConsumerProtocol, v3."""
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
    """Write what a consumer is given of a topic. Source: ConsumerProtocol, v3."""
    numbers = [int32(partition) for partition in partitions]
    given = [string(topic) + array(numbers)] if numbers else []
    return int16(_ASSIGNMENT_VERSION) + array(given) + byte_string(user_data)


def encode_group_key(group: str) -> bytes:
    """Write the key of a group's metadata, type 2."""
    return int16(2) + string(group)


def encode_group_metadata(
    generation: int,
    protocol: str | None,
    leader: str | None,
    state_timestamp_ms: int,
    members: Iterable[EncodedMember],
) -> bytes:
    """Write a group's metadata as its coordinator does. Source: GroupMetadataValue, v3.

    Generation 0 is that of a group which nobody has joined yet: of no protocol at all.
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
    """Write how many elements there are, and each."""
    written = list(elements)
    return int32(len(written)) + b"".join(written)
