"""What a consumer group's assignment is, who decided it, how uneven it is, and what would even it out.

The object of ``caughtup explain --format json`` for groups of consumers, on both protocols.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeVar

from caughtup.models.assignors.consumer.group import (
    Assign,
    Assignment,
    ConsumerGroupSpec,
    ConsumerMember,
)
from caughtup.models.assignors.consumer.ranges import assign_coordinator_range, assign_range
from caughtup.models.assignors.consumer.round_robin import assign_round_robin
from caughtup.models.assignors.consumer.sticky import assign_sticky
from caughtup.models.assignors.consumer.uniform import assign_uniform, in_target_order
from caughtup.models.decisions.consumer_decision import (
    ConsumerDecision,
    consumer_decision,
)
from caughtup.models.errors import CaughtupError
from caughtup.models.groups.membership import Member, Membership
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.hot import HotPartition, hot_partition
from caughtup.models.lag.rates import produce_rate
from caughtup.models.rebalances.rebalance import GroupRebalance
from caughtup.models.records.fields import ABSENT, Absent, Part, or_absent, or_none
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.share_groups import SHARE

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
Amount = TypeVar("Amount", int, float)


class AssignedMember(Part, kw_only=True):
    """A member and its partitions; ``lag`` is their sum (offsets), absent unless all are known.

    ``rate`` is how many records a second their logs grew by over the last minute, absent unless that
    is known of all. On the new protocols: its ``epoch``, the partitions that it ``revokes`` before
    others can have them, since when it has had to (``revokes_since_ms``, if that was read), and those
    that it ``awaits``, because its target assignment has them.
    """

    member: str
    client_id: str
    host: str
    assigned: list[tuple[str, int]]
    lag: int | Absent = ABSENT
    rate: float | Absent = ABSENT
    epoch: int | Absent = ABSENT
    revokes: list[tuple[str, int]] | Absent = ABSENT
    revokes_since_ms: int | Absent = ABSENT
    awaits: list[tuple[str, int]] | Absent = ABSENT

    @property
    def which(self) -> str:
        """Its partitions as text: ``orders 0-3 7, clicks 1``."""
        return ranges(self.assigned)


class OtherSize(Part, kw_only=True):
    """The group with one member more or one fewer, by its own assignor.

    ``moves`` is how many assigned partitions get another member, ``most_partitions``, ``most_lag`` and
    ``most_rate`` the greatest number, lag and records a second of a member then; ``idle`` is how many
    members have no partition.
    """

    moves: int
    most_partitions: int
    idle: int
    most_lag: int | Absent = ABSENT
    most_rate: float | Absent = ABSENT


class ConsumerGroupExplanation(Part, kw_only=True):
    """The explanation; what isn't known is absent.

    ``decision``: who decided, and whether as the assignor of the leader's client does, or that of
    the group coordinator. Of a group on a new protocol: ``next_assignor``, by which the coordinator
    says it assigns next, empty if it names none, and ``target_epoch`` and ``target_ms``, for which
    epoch its target assignment was computed, and when. ``rebalances`` are the last ones of which the
    log or the service knows, the newest first. ``hot`` has most of the lag, and ``busiest`` gets
    most of the records. ``says`` is all of it in sentences, in the answer of a service.
    """

    group: str
    group_type: str
    generation: int
    members: list[AssignedMember]
    assignor: str | Absent = ABSENT
    decision: ConsumerDecision | Absent = ABSENT
    next_assignor: str | Absent = ABSENT
    target_epoch: int | Absent = ABSENT
    target_ms: int | Absent = ABSENT
    rebalances: Sequence[GroupRebalance] = ()
    hot: HotPartition | Absent = ABSENT
    busiest: HotPartition | Absent = ABSENT
    one_more: OtherSize | Absent = ABSENT
    one_fewer: OtherSize | Absent = ABSENT
    says: list[str] | Absent = ABSENT

    @property
    def idle(self) -> list[AssignedMember]:
        """The members that have no partition, and await none."""
        return [one for one in self.members if not one.assigned and not or_none(one.awaits)]


class _Amounts(NamedTuple):
    """The lag (offsets) and the records a second of each partition, None where unknown."""

    lags: Mapping[TopicPartition, int | None]
    rates: Mapping[TopicPartition, float | None]


class _Assignable(NamedTuple):
    """A group, and the assignor that decides for it next."""

    assign: Assign
    group: ConsumerGroupSpec


class BegunExplanation(NamedTuple):
    """An explanation without the other sizes, and what they are computed from."""

    explanation: ConsumerGroupExplanation
    assignable: _Assignable | None
    amounts: _Amounts

    def complete(self) -> ConsumerGroupExplanation:
        """Return the explanation with the other sizes, on any thread: it takes long for large groups."""
        found, assignable = self.explanation, self.assignable
        if assignable is not None:
            found.one_more = or_absent(_one_more(assignable, self.amounts))
            found.one_fewer = or_absent(_one_fewer(assignable, self.amounts))
        return found


def explain_consumer_group(state: ClusterState, group: str) -> ConsumerGroupExplanation | None:
    """Return what is known of a group's assignment, see ``begin_explanation``."""
    begun = begin_explanation(state, group)
    return None if begun is None else begun.complete()


def begin_explanation(state: ClusterState, group: str) -> BegunExplanation | None:
    """Return what is known of a group's assignment; None if it isn't one of consumers with members.

    A Streams application whose tasks the coordinator assigns is one, too, and a share group, whose
    members may have the same partitions. A classic group is compared if its record was kept, see
    ``ClusterState.apply_batch``.
    """
    membership = state.groups.membership(group)
    if membership is None or membership.group_type not in ("classic", "consumer", "streams", SHARE):
        return None
    if not membership.members:
        return None
    amounts = _amounts(state, group)
    owned = state.groups.assigned(group)
    metadata = state.kept_records.get(group)
    counts = state.ends.partition_counts()
    decision = state.group_decisions.last(group)
    if membership.group_type == "classic" and metadata is not None:
        decision = consumer_decision(metadata, counts)
    on_epochs = state.groups.consumer.get(group) or state.groups.streams.get(group)
    target = None if on_epochs is None else on_epochs.target_of
    explanation = ConsumerGroupExplanation(
        group=group,
        group_type=membership.group_type,
        generation=membership.generation,
        members=[
            _member(state, group, one, owned.get(one.member_id, ()), amounts)
            for one in membership.members
        ],
        assignor=or_absent(membership.assignor),
        decision=or_absent(decision),
        next_assignor=or_absent(state.group_decisions.next_assignor(group)),
        target_epoch=ABSENT if target is None else target.assignment_epoch,
        target_ms=or_absent((target.assignment_timestamp_ms or None) if target else None),
        rebalances=state.rebalances.of(group),
        hot=or_absent(hot_partition(amounts.lags)),
        busiest=or_absent(hot_partition(amounts.rates)),
    )
    return BegunExplanation(explanation, _assignable(state, group, membership, owned), amounts)


def _amounts(state: ClusterState, group: str) -> _Amounts:
    lags: dict[TopicPartition, int | None] = {}
    rates: dict[TopicPartition, float | None] = {}
    for row in state.partition_rows(group):
        lags[row.partition] = row.lag and row.lag.lag
        history = state.ends.history(row.partition)
        rates[row.partition] = None if history is None else produce_rate(history)
    return _Amounts(lags, rates)


def _member(
    state: ClusterState,
    group: str,
    member: Member,
    owned: Sequence[TopicPartition],
    amounts: _Amounts,
) -> AssignedMember:
    found = AssignedMember(
        member=member.member_id,
        client_id=member.client_id,
        host=member.host,
        assigned=[(*partition,) for partition in owned],
        lag=_sum(owned, amounts.lags),
        rate=_sum(owned, amounts.rates),
    )
    reconciled = state.groups.reconciliation(group, member.member_id)
    if reconciled is not None:
        found.epoch = reconciled.epoch
        found.revokes = [(*partition,) for partition in reconciled.revokes]
        found.awaits = [(*partition,) for partition in reconciled.awaits]
        if found.revokes:
            since_ms = state.rebalances.revoking_since(group, member.member_id)
            found.revokes_since_ms = or_absent(since_ms)
    return found


def _assignable(
    state: ClusterState,
    group: str,
    membership: Membership,
    owned: Mapping[str, Sequence[TopicPartition]],
) -> _Assignable | None:
    """Return the group as its assignor would see it now, None if that isn't known."""
    counts = state.ends.partition_counts()
    consumer = state.groups.consumer.get(group)
    known = _CLASSIC if consumer is None else _COORDINATOR
    assign = known.get(membership.assignor or "")
    if assign is None or not all(one.topics for one in membership.members):
        return None
    topics = {topic: counts[topic] for topic in sorted(membership.topics) if topic in counts}
    members: dict[str, ConsumerMember] = {}
    for member in membership.members:
        name = member.member_id
        has = owned.get(name, ())
        if consumer is not None:
            target = consumer.target_partitions(name, state.topics.names)
            has = in_target_order(topics, has if target is None else target)
        members[name] = ConsumerMember(
            tuple(sorted(member.topics)),
            member.instance_id,
            owned=has,
            generation=membership.generation,
            joined_generation=membership.generation,
        )
    return _Assignable(assign, ConsumerGroupSpec(members, topics))


def _one_more(now: _Assignable, amounts: _Amounts) -> OtherSize | None:
    topics = tuple(dict.fromkeys(t for m in now.group.members.values() for t in m.topics))
    more = {**now.group.members, _NEW_MEMBER: ConsumerMember(topics)}
    return _other_size(now, more, amounts)


def _one_fewer(now: _Assignable, amounts: _Amounts) -> OtherSize | None:
    """Return the group without the member that has the fewest partitions, the last by id."""
    members = now.group.members
    if len(members) < 2:
        return None
    least = min(len(one.owned) for one in members.values())
    gone = max(name for name, one in members.items() if len(one.owned) == least)
    return _other_size(now, {name: members[name] for name in members if name != gone}, amounts)


def _other_size(
    now: _Assignable, members: Mapping[str, ConsumerMember], amounts: _Amounts
) -> OtherSize | None:
    try:
        after = now.assign(ConsumerGroupSpec(members, now.group.topics))
    except CaughtupError:
        return None
    before = {one: name for name, own in now.group.members.items() for one in own.owned}
    return OtherSize(
        moves=sum(before.get(one, name) != name for name, own in after.items() for one in own),
        most_partitions=max(map(len, after.values())),
        idle=sum(not own for own in after.values()),
        most_lag=_most(after, amounts.lags),
        most_rate=_most(after, amounts.rates),
    )


def _most(after: Assignment, amounts: Mapping[TopicPartition, Amount | None]) -> Amount | Absent:
    """Return the greatest sum of a member, absent unless all are known."""
    sums = [_sum(own, amounts) for own in after.values()]
    known = [one for one in sums if not isinstance(one, Absent)]
    return max(known) if len(known) == len(sums) else ABSENT


def _sum(
    partitions: Sequence[TopicPartition], amounts: Mapping[TopicPartition, Amount | None]
) -> Amount | Absent:
    known = [amount for one in partitions if (amount := amounts.get(one)) is not None]
    return sum(known) if len(known) == len(partitions) else ABSENT


def ranges(assigned: Sequence[tuple[str, int]]) -> str:
    """Return partitions as ``orders 0-3 7``, topic by topic."""
    numbers: dict[str, list[int]] = {}
    for topic, number in assigned:
        numbers.setdefault(topic, []).append(number)
    parts = []
    for topic, own in numbers.items():
        runs: list[list[int]] = []
        for number in own:
            if runs and number == runs[-1][1] + 1:
                runs[-1][1] = number
            else:
                runs.append([number, number])
        parts.append(" ".join([topic, *(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)]))
    return ", ".join(parts)
