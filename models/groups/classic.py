"""A classic group's record, decoded completely: this takes long, and may be done on any thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from caughtup.models.errors import DecodeError
from caughtup.models.groups.assignments import decode_assignments
from caughtup.models.groups.generation import StreamsGeneration, read_streams_generation
from caughtup.models.groups.membership import Membership, classic_membership
from caughtup.models.wire.group_metadata import GroupMetadata


class ClassicGroup(NamedTuple):
    """A group's members, and its generation if it is Kafka Streams'.

    ``errors`` are those of unreadable assignments.
    """

    membership: Membership
    generation: StreamsGeneration | None
    errors: tuple[DecodeError, ...]


#: A decoded group: None for a deleted one, or an unexpected error.
ReadGroup = ClassicGroup | Exception | None


def read_classic_groups(groups: Mapping[str, GroupMetadata | None]) -> dict[str, ReadGroup]:
    """Decode the groups of a batch of records, in the order of their names."""
    return {group: _read(group, metadata) for group, metadata in sorted(groups.items())}


def _read(group: str, metadata: GroupMetadata | None) -> ReadGroup:
    if metadata is None:
        return None
    try:
        assignments = decode_assignments(metadata)
        membership, errors = classic_membership(metadata, assignments)
        generation = read_streams_generation(group, metadata, {}, assignments)
        return ClassicGroup(membership, generation, errors)
    except Exception as error:  # noqa: BLE001 - it is reported where the group is applied
        return error
