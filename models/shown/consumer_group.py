"""What a consumer group's assignment is, who decided it, how uneven it is, and what would even it out.

The object of ``caughtup explain --format json`` for groups of consumers, on both protocols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from caughtup.models.assignors.consumer.group import Assignment, ConsumerGroup, ConsumerMember
from caughtup.models.assignors.consumer.ranges import assign_coordinator_range, assign_range
from caughtup.models.assignors.consumer.round_robin import assign_round_robin
from caughtup.models.assignors.consumer.sticky import assign_sticky
from caughtup.models.assignors.consumer.uniform import assign_uniform, in_target_order
from caughtup.models.decisions.consumer_decision import (
    Assign,
    ConsumerDecision,
    consumer_decision,
)
from caughtup.models.errors import CaughtupError, DecodeError
from caughtup.models.groups.membership import Member, Membership
from caughtup.models.ids import TopicPartition
from caughtup.models.rebalances.rebalance import Rebalance
from caughtup.models.records.fields import ABSENT, Absent, Part, or_absent, or_none
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.group_metadata import GroupMetadata, decode_subscription

#: From this share of the group's lag on, a partition is the one that has to be read faster.
HOT_SHARE = 0.5
_UNIFORM, _COORDINATOR_RANGE = "uniform", "range"
_CLASSIC: Mapping[str, Assign] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_sticky,  # once every member has revoked what it has to
}
_COORDINATOR: Mapping[str, Assign] = {
    _UNIFORM: assign_uniform,
    _COORDINATOR_RANGE: assign_coordinator_range,
}
_NEW_MEMBER = "another member"


class AssignedMember(Part, kw_only=True):
    """A member and its partitions; ``lag`` is their sum (offsets), absent unless all are known.

    On the new protocol: its ``epoch``, the partitions that it ``revokes`` before others can have
    them, and those that it ``awaits``, because its target assignment has them.
    """

    member: str
    client_id: str
    host: str
    assigned: list[tuple[str, int]]
    lag: int | Absent = ABSENT
    epoch: int | Absent = ABSENT
    revokes: list[tuple[str, int]] | Absent = ABSENT
    awaits: list[tuple[str, int]] | Absent = ABSENT


class HotPartition(Part):
    """A partition with most of the group's lag; ``share`` is its part of it, up to 1."""

    topic: str
    partition: int
    share: float


class OtherSize(Part, kw_only=True):
    """The group with one member more or one fewer, by its own assignor.

    ``moves`` is how many assigned partitions get another member, ``most_partitions`` and ``most_lag``
    the greatest number and lag of a member then; ``idle`` is how many members have no partition.
    """

    moves: int
    most_partitions: int
    idle: int
    most_lag: int | Absent = ABSENT


class ConsumerGroupExplanation(Part, kw_only=True):
    """The explanation; what isn't known is absent.

    ``decision``: who decided, and whether as the assignor of the leader's client does, or that of
    the group coordinator. ``target_epoch`` and ``target_ms`` are of a group on the new protocol:
    for which epoch its target assignment was computed, and when. ``rebalances`` are the last ones
    of which the log or the service knows, the newest first.
    """

    group: str
    group_type: str
    generation: int
    members: list[AssignedMember]
    assignor: str | Absent = ABSENT
    decision: ConsumerDecision | Absent = ABSENT
    target_epoch: int | Absent = ABSENT
    target_ms: int | Absent = ABSENT
    rebalances: Sequence[Rebalance] = ()
    hot: HotPartition | Absent = ABSENT
    one_more: OtherSize | Absent = ABSENT
    one_fewer: OtherSize | Absent = ABSENT

    @property
    def idle(self) -> list[AssignedMember]:
        """The members that have no partition, and await none."""
        return [one for one in self.members if not one.assigned and not or_none(one.awaits)]


class _Assignable(NamedTuple):
    """A group, and the assignor that decides for it next."""

    assign: Assign
    group: ConsumerGroup


def explain_consumer_group(state: ClusterState, group: str) -> ConsumerGroupExplanation | None:
    """Return what is known of a group's assignment; None if it isn't one of consumers with members.

    A Streams application whose tasks the coordinator assigns is one, too.

    A classic group is compared if its record was kept, see ``ClusterState.apply_batch``.
    """
    membership = state.groups.membership(group)
    if membership is None or membership.group_type not in ("classic", "consumer", "streams"):
        return None
    if not membership.members:
        return None
    lags = {row.partition: row.lag and row.lag.lag for row in state.partition_rows(group)}
    owned: dict[str, list[TopicPartition]] = {one.member_id: [] for one in membership.members}
    for partition, member in sorted(membership.owners.items()):
        owned[member.member_id].append(partition)
    counts = state.ends.partition_counts()
    metadata = state.kept_records.get(group)
    consumer = state.groups.consumer.get(group)
    decision = state.group_decisions.last(group)
    if membership.group_type == "classic":
        decision = None if metadata is None else consumer_decision(metadata, counts)
    target = None if consumer is None else consumer.target_of
    assignable = _assignable(state, group, membership, metadata, owned)
    return ConsumerGroupExplanation(
        group=group,
        group_type=membership.group_type,
        generation=membership.generation,
        members=[
            _member(state, group, one, owned[one.member_id], lags) for one in membership.members
        ],
        assignor=_assignor(state, group, decision),
        decision=or_absent(decision),
        target_epoch=ABSENT if target is None else target.assignment_epoch,
        target_ms=or_absent((target.assignment_timestamp_ms or None) if target else None),
        rebalances=state.rebalances.of(group),
        hot=or_absent(_hot(lags)),
        one_more=or_absent(assignable and _one_more(assignable, lags)),
        one_fewer=or_absent(assignable and _one_fewer(assignable, lags)),
    )


def _member(
    state: ClusterState,
    group: str,
    member: Member,
    owned: Sequence[TopicPartition],
    lags: Mapping[TopicPartition, int | None],
) -> AssignedMember:
    found = AssignedMember(
        member=member.member_id,
        client_id=member.client_id,
        host=member.host,
        assigned=[(*partition,) for partition in owned],
        lag=_sum(owned, lags),
    )
    consumer = state.groups.consumer.get(group)
    if consumer is not None:
        reconciled = consumer.reconciliation(member.member_id, state.topics.names)
        if reconciled is not None:
            found.epoch = reconciled.epoch
            found.revokes = [(*partition,) for partition in reconciled.revokes]
            found.awaits = [(*partition,) for partition in reconciled.awaits]
    return found


def _assignor(state: ClusterState, group: str, decision: ConsumerDecision | None) -> str | Absent:
    if decision is not None:
        return decision.assignor
    consumer = state.groups.consumer.get(group)
    return ABSENT if consumer is None else consumer.assignor()


def _assignable(
    state: ClusterState,
    group: str,
    membership: Membership,
    metadata: GroupMetadata | None,
    owned: Mapping[str, Sequence[TopicPartition]],
) -> _Assignable | None:
    """Return the group as its assignor would see it now, None if that isn't known."""
    counts = state.ends.partition_counts()
    consumer = state.groups.consumer.get(group)
    members: dict[str, ConsumerMember] = {}
    if consumer is not None:
        assign = _COORDINATOR.get(consumer.assignor())
        read = consumer.topics_of()
        statics = {name: one.instance_id for name, one in consumer.members.items()}
    elif metadata is not None:
        assign = _CLASSIC.get(metadata.protocol or "")
        try:
            read = {
                name: decode_subscription(one.subscription).topics
                for name, one in metadata.by_id().items()
            }
        except DecodeError:
            return None
        statics = {name: one.group_instance_id for name, one in metadata.by_id().items()}
    else:
        return None
    if assign is None or read.keys() != owned.keys():
        return None
    topics = {topic: counts[topic] for topic in sorted(membership.topics) if topic in counts}
    for name, partitions in owned.items():
        has = partitions
        if consumer is not None:
            target = consumer.target_partitions(name, state.topics.names)
            has = in_target_order(topics, partitions if target is None else target)
        members[name] = ConsumerMember(
            tuple(read[name]),
            statics[name],
            owned=has,
            generation=membership.generation,
            joined_generation=membership.generation,
        )
    return _Assignable(assign, ConsumerGroup(members, topics))


def _one_more(now: _Assignable, lags: Mapping[TopicPartition, int | None]) -> OtherSize | None:
    topics = tuple(dict.fromkeys(t for m in now.group.members.values() for t in m.topics))
    more = {**now.group.members, _NEW_MEMBER: ConsumerMember(topics)}
    return _other_size(now, more, lags)


def _one_fewer(now: _Assignable, lags: Mapping[TopicPartition, int | None]) -> OtherSize | None:
    """Return the group without the member that has the fewest partitions, the last by id."""
    members = now.group.members
    if len(members) < 2:
        return None
    least = min(len(one.owned) for one in members.values())
    gone = max(name for name, one in members.items() if len(one.owned) == least)
    return _other_size(now, {name: members[name] for name in members if name != gone}, lags)


def _other_size(
    now: _Assignable,
    members: Mapping[str, ConsumerMember],
    lags: Mapping[TopicPartition, int | None],
) -> OtherSize | None:
    try:
        after = now.assign(ConsumerGroup(members, now.group.topics))
    except CaughtupError:
        return None
    before = {one: name for name, own in now.group.members.items() for one in own.owned}
    found = _most_lag(after, lags)
    return OtherSize(
        moves=sum(before.get(one, name) != name for name, own in after.items() for one in own),
        most_partitions=max(map(len, after.values())),
        idle=sum(not own for own in after.values()),
        most_lag=or_absent(found),
    )


def _most_lag(after: Assignment, lags: Mapping[TopicPartition, int | None]) -> int | None:
    sums = [_sum(own, lags) for own in after.values()]
    known = [one for one in sums if not isinstance(one, Absent)]
    return max(known) if len(known) == len(sums) else None


def _sum(
    partitions: Sequence[TopicPartition], lags: Mapping[TopicPartition, int | None]
) -> int | Absent:
    total = 0
    for one in partitions:
        lag = lags.get(one)
        if lag is None:
            return ABSENT
        total += lag
    return total


def _hot(lags: Mapping[TopicPartition, int | None]) -> HotPartition | None:
    """Return the partition with most of the lag, None if none has, or a lag is unknown."""
    known = {one: lag for one, lag in lags.items() if lag is not None}
    total = sum(known.values())
    if len(known) < len(lags) or len(lags) < 2 or not total:
        return None
    worst = max(sorted(known), key=known.__getitem__)
    share = known[worst] / total
    return HotPartition(*worst, share) if share >= HOT_SHARE else None
