"""The assignments of a classic group's members, decoded once for all that need them."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.errors import DecodeError
from caughtup.models.wire.group_metadata import ConsumerAssignment, GroupMetadata, decode_assignment

#: The protocol name under which Kafka Streams joins a classic group.
STREAMS_PROTOCOL = "stream"
#: The protocol name of a follower in Python; its members' subscriptions have the same format.
FOLLOWERS_PROTOCOL = "caughtup"
STREAMS_PROTOCOLS = (STREAMS_PROTOCOL, FOLLOWERS_PROTOCOL)

#: Member id → the member's assignment, or the error in it.
Assignments = Mapping[str, ConsumerAssignment | DecodeError]


def decode_assignments(metadata: GroupMetadata) -> Assignments:
    """Return each member's decoded assignment; empty for groups without consumers."""
    if metadata.protocol_type != "consumer" and metadata.protocol not in STREAMS_PROTOCOLS:
        return {}
    return {
        member_id: _decode(member.assignment)
        for member_id, member in metadata.by_id().items()
        if member.assignment
    }


def _decode(assignment: bytes) -> ConsumerAssignment | DecodeError:
    try:
        return decode_assignment(assignment)
    except DecodeError as error:
        return error
