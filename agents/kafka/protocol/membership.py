"""The requests of a group member to its coordinator, and the answers.

No Python client lets its caller be a member of a group other than a consumer group. The versions
are those of Kafka 2.3 and 2.4, which brokers up to 4.x take.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from caughtup.agents.kafka.protocol.requests import Call, Key, classic_array, classic_string
from caughtup.models.wire.reader import Reader

_INT32 = struct.Struct(">i")
_NO_INSTANCE = struct.pack(">h", -1)  # a null group.instance.id: no static membership


class JoinGroupAnswer(NamedTuple):
    """The answer to JoinGroup; ``members``: their subscriptions by id, for the leader only.

    ``protocol`` is the one that the coordinator chose among those that all members offer.
    """

    error_code: int
    generation: int
    leader: str
    member_id: str
    members: Mapping[str, bytes]
    protocol: str = ""


class JoinGroupSettings(NamedTuple):
    """What a member joins with: the group, the protocols it knows, preferred first, and time-outs."""

    group: str
    protocol_type: str
    protocols: tuple[str, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int


def join_group_call(joining: JoinGroupSettings, member_id: str, subscription: bytes) -> Call:
    """Ask to join; with an empty ``member_id`` the coordinator assigns one. Since 2.3."""
    timeouts = _INT32.pack(joining.session_timeout_ms) + _INT32.pack(joining.rebalance_timeout_ms)
    protocols = classic_array(
        [classic_string(name) + _byte_string(subscription) for name in joining.protocols]
    )
    head = classic_string(joining.group) + timeouts + classic_string(member_id) + _NO_INSTANCE
    body = head + classic_string(joining.protocol_type) + protocols
    return Call(Key.JOIN_GROUP, 5, False, body)


def sync_group_call(
    group: str, generation: int, member_id: str, assignments: Mapping[str, bytes]
) -> Call:
    """Ask for the member's assignment; the leader sends all assignments. Since 2.3."""
    given = [classic_string(one) + _byte_string(raw) for one, raw in sorted(assignments.items())]
    body = _identity(group, generation, member_id) + classic_array(given)
    return Call(Key.SYNC_GROUP, 3, False, body)


def heartbeat_call(group: str, generation: int, member_id: str) -> Call:
    """Send a heartbeat. Since 2.3."""
    return Call(Key.HEARTBEAT, 3, False, _identity(group, generation, member_id))


def leave_group_call(group: str, member_ids: Iterable[str]) -> Call:
    """Remove members from the group at once. Since 2.4."""
    members = [classic_string(member_id) + _NO_INSTANCE for member_id in member_ids]
    return Call(Key.LEAVE_GROUP, 3, False, classic_string(group) + classic_array(members))


def decode_join_group(data: bytes) -> JoinGroupAnswer:
    """Decode the answer to JoinGroup v5. Raises DecodeError."""
    reader = Reader(data)
    reader.int32()  # throttle time
    code, generation = reader.int16(), reader.int32()
    protocol, leader, member_id = reader.string(), reader.string(), reader.string()
    members = {}
    for _ in range(reader.array_length(1)):
        member = reader.string()
        reader.nullable_string()  # group instance id
        members[member] = reader.byte_string()
    reader.expect_end()
    return JoinGroupAnswer(code, generation, leader, member_id, members, protocol)


def decode_sync_group(data: bytes) -> tuple[int, bytes]:
    """Decode the answer to SyncGroup v3: the error code, the assignment. Raises DecodeError."""
    reader = Reader(data)
    reader.int32()  # throttle time
    code, assignment = reader.int16(), reader.byte_string()
    reader.expect_end()
    return code, assignment


def decode_heartbeat(data: bytes) -> int:
    """Decode the error code of the answer to Heartbeat v3. Raises DecodeError."""
    reader = Reader(data)
    reader.int32()  # throttle time
    code = reader.int16()
    reader.expect_end()
    return code


def decode_leave_group(data: bytes) -> int:
    """Decode the error code of the answer to LeaveGroup v3. Raises DecodeError.

    The members' own codes are skipped: a member that is not in the group has left already.
    """
    reader = Reader(data)
    reader.int32()  # throttle time
    code = reader.int16()
    for _ in range(reader.array_length(1)):
        reader.string()
        reader.nullable_string()
        reader.int16()
    reader.expect_end()
    return code


def _identity(group: str, generation: int, member_id: str) -> bytes:
    return (
        classic_string(group) + _INT32.pack(generation) + classic_string(member_id) + _NO_INSTANCE
    )


def _byte_string(raw: bytes) -> bytes:
    return _INT32.pack(len(raw)) + raw
