"""Short constructors of a Kafka Streams application's generations, encoded and decoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.polls.batch import Record
from caughtup.models.wire.group_metadata import (
    ConsumerAssignment,
    ConsumerSubscription,
    GroupMember,
    GroupMetadata,
)
from caughtup.models.wire.user_data import AssignmentInfo, SubscriptionInfo
from tests.support import wire
from tests.support.groups.records import GROUP, SOURCE, START_MS, group_member

CHANGELOG = "orders-counts-changelog"
RUNNING = -2


def process(number: int) -> ProcessId:
    """Return a process id from a small number."""
    return ProcessId.of(number)


@dataclass(frozen=True)
class Member:
    """A stream thread: its subscription and its assignment.

    Tasks are written ``0_1``. ``owned`` are the tasks whose partitions it has when it joins,
    ``sums`` its offset sums. ``user_data`` replaces a Streams member's user data.
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
    host: str = "/127.0.0.1"

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
    """Return a completed generation's record. ``sources``: source topic → subtopology."""
    topics = {SOURCE: 0} if sources is None else sources
    metadata = GroupMetadata(
        protocol_type="consumer",
        generation=number,
        protocol="stream",
        leader=members[0].client_id if members else None,
        state_timestamp_ms=at_ms,
        members=tuple(streams_member(member, topics, version) for member in members),
    )
    return wire.group_key(group), wire.group_metadata(metadata, 3)


def streams_member(member: Member, topics: Mapping[str, int], version: int = 11) -> GroupMember:
    """Return a member as the group's record has it."""
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
        # A task is listed once for each of its partitions, in their order.
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
        member.host,
    )


def _sources(task: str, topics: Mapping[str, int]) -> tuple[TopicPartition, ...]:
    wanted = TaskId.parse(task)
    return tuple(
        TopicPartition(topic, wanted.partition)
        for topic, subtopology in sorted(topics.items())
        if subtopology == wanted.subtopology
    )


# An instance joins one that runs everything: it warms up, takes over, then runs the task.
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
