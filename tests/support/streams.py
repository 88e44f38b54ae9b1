"""Generations of a Kafka Streams application in few words, sent through the bytes of the wire."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from caughtup.models.decisions.application import Application
from caughtup.models.decisions.recommendation_fields import recommendation_fields
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.parameters import DEFAULTS, ApplicationParameters
from caughtup.models.polls.batch import Record, decode_batch
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.assignment_info import AssignmentInfo
from caughtup.models.wire.consumer_offsets import OffsetCommit, OffsetKey
from caughtup.models.wire.consumer_protocol import ConsumerAssignment, ConsumerSubscription
from caughtup.models.wire.group_metadata import GroupMember, GroupMetadata
from caughtup.models.wire.subscription_info import SubscriptionInfo
from tests.support import wire

GROUP = "orders"
SOURCE = "orders-in"
CHANGELOG = "orders-counts-changelog"
#: When the first generation began, in ms.
START_MS = 1_732_000_000_000
RUNNING = -2
#: Everything that the wire doesn't show of the application, told: nothing is assumed or inferred.
TOLD = ApplicationParameters(config=dict(DEFAULTS), changelogs={0: (CHANGELOG,)})


def process(number: int) -> ProcessId:
    """Name a process by a small number."""
    return ProcessId.of(number)


@dataclass(frozen=True)
class Member:
    """A stream thread: what it says when it joins, and what the leader gives it.

    Tasks are written ``0_1``. ``owned`` are the tasks whose partitions it holds when it joins,
    ``sums`` its offset sums. ``user_data`` replaces what a Streams member would say.
    """

    name: str
    process: int
    owned: tuple[str, ...] = ()
    sums: Mapping[str, int] = field(default_factory=dict)
    active: tuple[str, ...] = ()
    standby: tuple[str, ...] = ()
    probe_at_ms: int | None = None
    error_code: int = 0
    thread: int = 1
    tags: Mapping[str, str] = field(default_factory=dict)
    user_data: bytes | None = None

    @property
    def client_id(self) -> str:
        return f"{self.name}-StreamThread-{self.thread}-consumer"


def generation(
    number: int,
    *members: Member,
    group: str = GROUP,
    sources: Mapping[str, int] | None = None,
    at_ms: int = START_MS,
    version: int = 11,
) -> Record:
    """The record of a completed generation. ``sources``: source topic → subtopology."""
    topics = {SOURCE: 0} if sources is None else sources
    metadata = GroupMetadata(
        protocol_type="consumer",
        generation=number,
        protocol="stream",
        leader=members[0].client_id if members else None,
        state_timestamp_ms=at_ms,
        members=tuple(_group_member(member, topics, version) for member in members),
    )
    return wire.group_key(group), wire.group_metadata(metadata, 3)


def _group_member(member: Member, topics: Mapping[str, int], version: int) -> GroupMember:
    said = member.user_data
    if said is None:
        info = SubscriptionInfo(
            version=version,
            latest_supported_version=version,
            process_id=process(member.process),
            user_end_point="",
            offset_sums={TaskId.parse(task): s for task, s in member.sums.items()},
            unique_field=0,
            error_code=0,
            client_tags=dict(member.tags),
        )
        said = wire.subscription_info(info)
    given = sorted((p, t) for t in member.active for p in _sources(t, topics))
    assignment = AssignmentInfo(
        version=version,
        commonly_supported_version=version,
        # A task stands once for each of its partitions, in their order.
        active=tuple(TaskId.parse(task) for _, task in given),
        standby={TaskId.parse(t): _sources(t, topics) for t in member.standby},
        active_by_host={},
        standby_by_host={},
        error_code=member.error_code,
        next_rebalance_ms=member.probe_at_ms,
    )
    owned = tuple(sorted(p for t in member.owned for p in _sources(t, topics)))
    partitions = tuple(partition for partition, _ in given)
    return group_member(
        member.client_id,
        ConsumerSubscription(3, tuple(sorted(topics)), said, owned, -1, None),
        ConsumerAssignment(3, partitions, wire.assignment_info(assignment)),
    )


def group_member(
    client_id: str, subscription: ConsumerSubscription, assignment: ConsumerAssignment
) -> GroupMember:
    """A member as the coordinator writes it; its member id is its client id."""
    return GroupMember(
        member_id=client_id,
        group_instance_id=None,
        client_id=client_id,
        client_host="/127.0.0.1",
        rebalance_timeout_ms=300_000,
        session_timeout_ms=45_000,
        subscription=wire.subscription(subscription),
        assignment=wire.assignment(assignment),
    )


def _sources(task: str, topics: Mapping[str, int]) -> tuple[TopicPartition, ...]:
    wanted = TaskId.parse(task)
    return tuple(
        TopicPartition(topic, wanted.partition)
        for topic, subtopology in sorted(topics.items())
        if subtopology == wanted.subtopology
    )


def consumer_generation(
    number: int,
    owners: Mapping[str, tuple[TopicPartition, ...]],
    group: str = GROUP,
    protocol: str = "range",
) -> Record:
    """The record of a group of plain consumers. ``owners``: client id → its partitions."""
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
    partition: int, offset: int | None, *, topic: str = SOURCE, group: str = GROUP, at_ms: int = 0
) -> Record:
    """The record of a committed offset; None is a tombstone."""
    value = None
    if offset is not None:
        value = wire.offset_commit(OffsetCommit(offset, -1, "", at_ms, -1, None), 3)
    return wire.offset_key(OffsetKey(group, topic, partition)), value


def cluster_state(parameters: ApplicationParameters = TOLD, group: str = GROUP) -> ClusterState:
    return ClusterState("cluster-1", {group: parameters})


def read(state: ClusterState, *records: Record, seen_ms: int = START_MS) -> None:
    """Read one poll of ``__consumer_offsets``."""
    state.apply_batch(decode_batch(records), seen_ms)


def publish(state: ClusterState, now_ms: int = START_MS) -> list[dict[str, Any]]:
    """Decide all that is due, and return the records, as a consumer of their topic reads them."""
    fields = map(recommendation_fields, state.decide(now_ms))
    return [json.loads(json.dumps(record)) for record in fields]


def application(state: ClusterState, group: str = GROUP) -> Application:
    return state.applications[group]


def list_ends(
    state: ClusterState, ends: Mapping[int, int], *, at_ms: int, topic: str = CHANGELOG
) -> None:
    """List the end offsets of a topic's partitions (partition → log end offset) at a moment."""
    for partition, end in ends.items():
        sample = EndOffsets(0, end, end, at_ms)
        state.apply_ends(TopicPartition(topic, partition), sample)


# An instance joins the one that runs everything: it warms up, takes over, and then has it.
WARMING = (
    Member("a", 1, ("0_0", "0_1"), {"0_0": RUNNING, "0_1": RUNNING}, ("0_0", "0_1"), (), START_MS),
    Member("b", 2, standby=("0_1",)),
)
HANDING_OVER = (
    Member("a", 1, ("0_0", "0_1"), {"0_0": RUNNING, "0_1": RUNNING}, ("0_0",)),
    Member("b", 2, sums={"0_1": 45_000}, standby=("0_1",), probe_at_ms=0),
)
HANDED_OVER = (
    Member("a", 1, ("0_0",), {"0_0": RUNNING, "0_1": 50_000}, ("0_0",)),
    Member("b", 2, sums={"0_1": 49_000}, active=("0_1",)),
)
#: The log end offsets of the changelog throughout, by partition.
ENDS = {0: 50_000, 1: 50_000}


def known_ends(state: ClusterState, since_ms: int = START_MS - 60_000) -> None:
    """List end offsets that stand still long before and long after the first generations."""
    list_ends(state, ENDS, at_ms=since_ms)
    list_ends(state, ENDS, at_ms=START_MS + 60_000)
    list_ends(state, dict.fromkeys(ENDS, 100), at_ms=START_MS + 60_000, topic=SOURCE)
