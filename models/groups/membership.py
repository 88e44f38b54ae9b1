"""The members of a group and their partitions, on whichever protocol the group is.

Of a classic group, also the complete decoding of its record: that takes long, and may be done on any
thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from caughtup.models.errors import DecodeError
from caughtup.models.groups.generation import (
    Assignments,
    StreamsGeneration,
    decode_assignments,
    group_type,
    read_streams_generation,
)
from caughtup.models.ids import TopicPartition
from caughtup.models.wire.group_metadata import (
    GroupMember,
    GroupMetadata,
    decode_subscribed_topics,
)

NO_TOPICS: frozenset[str] = frozenset()


class Member(NamedTuple):
    """A member of a group; ``process`` if the protocol has one.

    ``instance_id`` is its ``group.instance.id``, None if it isn't static. ``topics`` are those of its
    subscription, and ``pattern`` is its regular expression, if the group coordinator resolves one.
    ``session_timeout_ms`` is None where the coordinator sets it; ``poll_interval_ms`` is
    ``max.poll.interval.ms``, which consumers send as their rebalance timeout.
    """

    member_id: str
    client_id: str
    host: str
    process: str | None = None
    instance_id: str | None = None
    topics: frozenset[str] = NO_TOPICS
    pattern: str | None = None
    session_timeout_ms: int | None = None
    poll_interval_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Membership:
    """A group's members, and the partitions that each of them reads.

    ``group_type`` is ``classic``, ``streams``, ``connect``, ``consumer`` or ``share``;
    ``generation`` the group's generation or epoch. ``topics`` are all topics that the group reads,
    assigned or not. ``rebalance_timeout_ms`` is the longest of any member, None without one; for a
    consumer it is ``max.poll.interval.ms``. ``assignor`` is the assignor's name, None where there is
    none or a broker's config chooses it; ``as_of_ms`` is when the generation or the target assignment
    was decided, None if it is unknown. ``by_epochs``: whether the group is on a protocol of epochs and
    target assignments (KIP-848, KIP-1071). ``unnamed``: whether partitions are left out whose topics are
    known by their ids only.
    """

    group_type: str
    generation: int
    members: tuple[Member, ...]
    owners: Mapping[TopicPartition, Member]
    topics: frozenset[str]
    rebalance_timeout_ms: int | None = None
    assignor: str | None = None
    as_of_ms: int | None = None
    by_epochs: bool = False
    unnamed: bool = False


class MemberReconciliation(NamedTuple):
    """A member's epoch, the partitions it has to revoke, and those of its target it doesn't have yet."""

    epoch: int
    revokes: tuple[TopicPartition, ...]
    awaits: tuple[TopicPartition, ...]


def classic_membership(
    metadata: GroupMetadata, assignments: Assignments
) -> tuple[Membership, tuple[DecodeError, ...]]:
    """Return the members of a group on the classic protocol, and the errors in their assignments.

    A member with an unreadable assignment has no partitions.
    """
    members: list[Member] = []
    owners: dict[TopicPartition, Member] = {}
    errors: list[DecodeError] = []
    subscribed: dict[tuple[str, ...], frozenset[str]] = {}
    for _, read in sorted(metadata.by_id().items()):
        member = Member(
            read.member_id,
            read.client_id,
            read.client_host,
            instance_id=read.group_instance_id,
            topics=_subscribed_topics(metadata, read, subscribed),
            session_timeout_ms=positive(read.session_timeout_ms),
            poll_interval_ms=positive(read.rebalance_timeout_ms),
        )
        members.append(member)
        given = assignments.get(read.member_id)
        if given is None or metadata.protocol_type != "consumer":
            continue
        if isinstance(given, DecodeError):
            errors.append(given)
            continue
        owners.update(dict.fromkeys(given.partitions, member))
    topics = frozenset(partition.topic for partition in owners)
    membership = Membership(
        group_type(metadata),
        metadata.generation,
        tuple(members),
        owners,
        topics,
        longest_timeout(read.rebalance_timeout_ms for read in metadata.members),
        metadata.protocol,
        positive(metadata.state_timestamp_ms),
    )
    return membership, tuple(errors)


def _subscribed_topics(
    metadata: GroupMetadata, member: GroupMember, known: dict[tuple[str, ...], frozenset[str]]
) -> frozenset[str]:
    """Return a consumer's topics, one set for all members that have the same; empty if unreadable."""
    if metadata.protocol_type != "consumer" or not member.subscription:
        return NO_TOPICS
    try:
        topics = decode_subscribed_topics(member.subscription)
    except DecodeError:
        return NO_TOPICS
    return known.setdefault(topics, frozenset(topics))


def positive(number: int) -> int | None:
    """Return a number above 0; None for others, which are no timeout and no time."""
    return number if number > 0 else None


def longest_timeout(timeouts_ms: Iterable[int]) -> int | None:
    """Return the longest of the members' timeouts (ms); None if none is above 0."""
    return max((timeout for timeout in timeouts_ms if timeout > 0), default=None)


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
