"""Requests of consumer group members to their coordinator, with one connection for each member.

No client library lets a caller decide in which order members join, their subscriptions, and the
leader's assignment. For an embedded cluster of one node, which is the coordinator, over plaintext.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from caughtup.demo.fleet.encoding import array, byte_string, int16, int32, string
from caughtup.demo.processes.children import ClosedOnExit
from caughtup.models.errors import CaughtupError
from caughtup.models.wire.reader import Reader

_LENGTH = struct.Struct(">i")
_COMMITTED = struct.Struct(">iqi")  # partition, offset, leader epoch
_NO_EPOCH = -1


class Error(IntEnum):
    """The error codes that are expected."""

    NONE = 0
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    REBALANCE_IN_PROGRESS = 27
    MEMBER_ID_REQUIRED = 79


class Request(NamedTuple):
    """A request's API key and version, and its name for messages."""

    key: int
    version: int
    name: str


_OFFSET_COMMIT = Request(8, 7, "OffsetCommit")
_JOIN_GROUP = Request(11, 5, "JoinGroup")
_HEARTBEAT = Request(12, 3, "Heartbeat")
_LEAVE_GROUP = Request(13, 3, "LeaveGroup")
_SYNC_GROUP = Request(14, 3, "SyncGroup")
_DELETE_GROUPS = Request(42, 1, "DeleteGroups")


class JoinResponse(NamedTuple):
    """The answer to JoinGroup; ``members``: all members for the leader, none for others."""

    error: int
    generation: int
    leader: str
    member_id: str
    members: tuple[str, ...]


class GroupConnection(ClosedOnExit):
    """One member's connection. Sending and reading the answer are separate, since joining blocks.

    Calls raise CaughtupError ``group_failed`` after ``timeout_seconds``, or if the coordinator
    refuses.
    """

    def __init__(self, address: tuple[str, int], client_id: str, timeout_seconds: float) -> None:
        self.client_id = client_id
        self._socket = socket.create_connection(address, timeout_seconds)
        self._asked: Request | None = None
        self._sent = 0

    def close(self) -> None:
        """Close the connection without leaving the group."""
        self._socket.close()

    def send_join(
        self, group: str, member_id: str, protocol: str, subscription: bytes, timeout_ms: int
    ) -> None:
        """Send JoinGroup; with an empty ``member_id`` the answer has one."""
        body = string(group) + int32(timeout_ms) + int32(timeout_ms) + string(member_id)
        protocols = array([string(protocol) + byte_string(subscription)])
        self._send(_JOIN_GROUP, body + string(None) + string("consumer") + protocols)

    def joined(self) -> JoinResponse:
        """Read the answer to JoinGroup, which comes once all members have joined."""
        reader = self._answer()
        error, generation = reader.int16(), reader.int32()
        _, leader, member_id = reader.nullable_string(), reader.string(), reader.string()
        members = []
        for _ in range(reader.array_length(1)):
            members.append(reader.string())
            reader.nullable_string()
            reader.byte_string()
        reader.expect_end()
        return JoinResponse(error, generation, leader, member_id, tuple(members))

    def send_sync(
        self, group: str, generation: int, member_id: str, assignments: Mapping[str, bytes]
    ) -> None:
        """Send SyncGroup, which asks for this member's assignment; the leader sends all of them."""
        given = (string(one) + byte_string(raw) for one, raw in sorted(assignments.items()))
        self._send(_SYNC_GROUP, _identity(group, generation, member_id) + array(given))

    def synced(self) -> bytes:
        """Read the assignment in the answer to SyncGroup."""
        reader = self._answer()
        self.require(reader.int16())
        given = reader.byte_string()
        reader.expect_end()
        return given

    def heartbeat(self, group: str, generation: int, member_id: str) -> int:
        """Send a heartbeat; return the error code, which shows whether the group rebalances."""
        self._send(_HEARTBEAT, _identity(group, generation, member_id))
        return self._answer().int16()

    def commit(
        self,
        group: str,
        generation: int,
        member_id: str,
        topic: str,
        offsets: Mapping[int, int],
    ) -> None:
        """Commit offsets of a topic as a member of a generation, without metadata."""
        entries = (
            _COMMITTED.pack(partition, offset, _NO_EPOCH) + string("")
            for partition, offset in sorted(offsets.items())
        )
        topics = array([string(topic) + array(entries)])
        self._send(_OFFSET_COMMIT, _identity(group, generation, member_id) + topics)
        reader = self._answer()
        for _ in range(reader.array_length(1)):
            reader.string()
            for _ in range(reader.array_length(1)):
                reader.int32()
                self.require(reader.int16())

    def leave(self, group: str, *member_ids: str) -> None:
        """Remove members from the group, all in one request."""
        members = array(string(one) + string(None) for one in member_ids)
        self._send(_LEAVE_GROUP, string(group) + members)
        self.require(self._answer().int16())

    def delete(self, group: str) -> None:
        """Delete an empty group with all its commits."""
        self._send(_DELETE_GROUPS, array([string(group)]))
        reader = self._answer()
        for _ in range(reader.array_length(1)):
            reader.string()
            self.require(reader.int16())

    def require(self, error: int) -> None:
        """Raise CaughtupError unless the error code is 0."""
        if error:
            raise self._failure(f"was refused with error {error}")

    def _send(self, request: Request, body: bytes) -> None:
        self._asked = request
        self._sent += 1
        head = int16(request.key) + int16(request.version) + int32(self._sent)
        message = head + string(self.client_id) + body
        try:
            self._socket.sendall(_LENGTH.pack(len(message)) + message)
        except OSError as error:
            raise self._failure(str(error)) from error

    def _answer(self) -> Reader:
        """Return a reader of the last request's answer, after its throttle time."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        reader = Reader(self._read(length))
        if (found := reader.int32()) != self._sent:
            raise self._failure(f"was answered as number {found}, not {self._sent}")
        reader.int32()
        return reader

    def _read(self, length: int) -> bytes:
        found = bytearray()
        while len(found) < length:
            try:
                more = self._socket.recv(length - len(found))
            except OSError as error:
                raise self._failure(str(error) or "has no answer in time") from error
            if not more:
                raise self._failure("was never answered: the broker closed the connection")
            found += more
        return bytes(found)

    def _failure(self, what: str) -> CaughtupError:
        name = self._asked.name if self._asked else "nothing"
        return CaughtupError("group_failed", f"{name} of {self.client_id} {what}")


def _identity(group: str, generation: int, member_id: str) -> bytes:
    return string(group) + int32(generation) + string(member_id) + string(None)
