"""Short constructors of ``__consumer_offsets`` records: consumer groups and commits."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.ids import TopicPartition
from caughtup.models.polls.batch import Record
from caughtup.models.wire.consumer_offsets import OffsetCommit, OffsetKey
from caughtup.models.wire.group_metadata import (
    ConsumerAssignment,
    ConsumerSubscription,
    GroupMember,
    GroupMetadata,
)
from tests.support import wire

GROUP = "orders"
SOURCE = "orders-in"
#: The time of the first generation, in ms.
START_MS = 1_732_000_000_000


def group_member(
    client_id: str,
    subscription: ConsumerSubscription,
    assignment: ConsumerAssignment,
    host: str = "/127.0.0.1",
) -> GroupMember:
    """Return a member as the coordinator writes it; its member id is its client id."""
    return GroupMember(
        member_id=client_id,
        group_instance_id=None,
        client_id=client_id,
        client_host=host,
        rebalance_timeout_ms=300_000,
        session_timeout_ms=45_000,
        subscription=wire.subscription(subscription),
        assignment=wire.assignment(assignment),
    )


def consumer_generation(
    number: int,
    owners: Mapping[str, tuple[TopicPartition, ...]],
    group: str = GROUP,
    protocol: str = "range",
) -> Record:
    """Return a consumer group's record. ``owners``: client id → its partitions."""
    metadata = GroupMetadata(
        protocol_type="consumer",
        generation=number,
        protocol=protocol,
        leader=min(owners, default=None),
        state_timestamp_ms=START_MS,
        members=tuple(
            group_member(
                client_id,
                ConsumerSubscription(3, (), None, (), -1, None),
                ConsumerAssignment(3, partitions, None),
            )
            for client_id, partitions in owners.items()
        ),
    )
    return wire.group_key(group), wire.group_metadata(metadata, 3)


def group_tombstone(group: str = GROUP) -> Record:
    return wire.group_key(group), None


def commit(
    partition: int,
    offset: int | None,
    *,
    topic: str = SOURCE,
    group: str = GROUP,
    at_ms: int = 0,
    topic_id: bytes | None = None,
) -> Record:
    """Return a committed offset's record, of version 4 with a topic id and else of version 3.

    Without an offset it is a tombstone.
    """
    value = None
    if offset is not None:
        version = 3 if topic_id is None else 4
        value = wire.offset_commit(OffsetCommit(offset, -1, "", at_ms, -1, topic_id), version)
    return wire.offset_key(OffsetKey(group, topic, partition)), value
