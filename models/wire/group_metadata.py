"""The value of a classic group's metadata: one completed generation with its members."""

from __future__ import annotations

from dataclasses import dataclass

from caughtup.models.errors import DecodeError
from caughtup.models.wire.bounds import bounded, known_time_ms
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
