"""What the members of a classic group were assigned, decoded once for all who need it."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.errors import DecodeError
from caughtup.models.wire.consumer_protocol import ConsumerAssignment, decode_assignment
from caughtup.models.wire.group_metadata import GroupMetadata

#: The protocol name under which Kafka Streams joins a classic group.
STREAMS_PROTOCOL = "stream"
#: The one under which a Python application joins that follows; its members say the same.
FOLLOWERS_PROTOCOL = "caughtup"
STREAMS_PROTOCOLS = (STREAMS_PROTOCOL, FOLLOWERS_PROTOCOL)

#: Member id → what the member was assigned, or what is wrong with that.
Assignments = Mapping[str, ConsumerAssignment | DecodeError]


def decode_assignments(metadata: GroupMetadata) -> Assignments:
    """Decode what each member was assigned; nothing in groups that no consumers are in."""
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
