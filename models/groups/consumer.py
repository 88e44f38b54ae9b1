"""A consumer group on the new protocol, from its records (KIP-848)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from caughtup.models.groups.membership import (
    Member,
    MemberReconciliation,
    Membership,
    longest_timeout,
    positive,
)
from caughtup.models.ids import TopicPartition
from caughtup.models.wire.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    ConsumerGroupRecord,
    ConsumerGroupRegularExpression,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata,
    TopicPartitions,
)
from caughtup.models.wire.record_keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupRegularExpressionKey,
    RecordType,
)

ConsumerGroupRecordKey = (
    ConsumerGroupKey | ConsumerGroupMemberKey | ConsumerGroupRegularExpressionKey
)


@dataclass(slots=True)
class ConsumerGroup:
    """The last value of each of the group's records.

    ``epoch`` is None before the group's own record was read and after its tombstone: then the group
    doesn't exist. ``target`` has the members' target assignments; the assignor computed them for the
    group's epoch in ``target_of``, None before that was read.
    """

    epoch: int | None = None
    members: dict[str, ConsumerGroupMemberMetadata] = field(default_factory=dict)
    current: dict[str, ConsumerGroupCurrentMemberAssignment] = field(default_factory=dict)
    target: dict[str, ConsumerGroupTargetAssignmentMember] = field(default_factory=dict)
    target_of: ConsumerGroupTargetAssignmentMetadata | None = None
    regular_expressions: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def apply(self, key: ConsumerGroupRecordKey, record: ConsumerGroupRecord | None) -> None:
        """Apply a record, or None for its tombstone."""
        if isinstance(key, ConsumerGroupRegularExpressionKey):
            if isinstance(record, ConsumerGroupRegularExpression):
                self.regular_expressions[key.regular_expression] = record.topics
            else:
                self.regular_expressions.pop(key.regular_expression, None)
        elif isinstance(key, ConsumerGroupMemberKey):
            self._apply_member(key, record)
        elif key.record_type is RecordType.CONSUMER_GROUP_METADATA:
            self.epoch = record.epoch if isinstance(record, ConsumerGroupMetadata) else None
            if record is None:  # brokers up to 4.0 don't delete the expressions of a deleted group
                self.regular_expressions.clear()

        elif key.record_type is RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA:
            self.target_of = None
            if isinstance(record, ConsumerGroupTargetAssignmentMetadata):
                self.target_of = record

    def _apply_member(
        self, key: ConsumerGroupMemberKey, record: ConsumerGroupRecord | None
    ) -> None:
        if isinstance(record, ConsumerGroupMemberMetadata):
            self.members[key.member_id] = record
        elif isinstance(record, ConsumerGroupCurrentMemberAssignment):
            self.current[key.member_id] = record
        elif isinstance(record, ConsumerGroupTargetAssignmentMember):
            self.target[key.member_id] = record
        elif key.record_type is RecordType.CONSUMER_GROUP_MEMBER_METADATA:
            self.members.pop(key.member_id, None)
        elif key.record_type is RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
            self.current.pop(key.member_id, None)
        elif key.record_type is RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
            self.target.pop(key.member_id, None)

    def is_empty(self) -> bool:
        """Return whether no record of the group is left."""
        left = self.members or self.current or self.target or self.regular_expressions
        return self.epoch is None and self.target_of is None and not left

    def topics(self) -> frozenset[str]:
        """Return the topics of its members' subscriptions, as far as their names are known."""
        names = {name for m in self.members.values() for name in m.subscribed_topic_names}
        for member in self.members.values():
            names.update(self.regular_expressions.get(member.subscribed_topic_regex or "", ()))
        return frozenset(names)

    def topics_of(self) -> dict[str, tuple[str, ...]]:
        """Return the topics of each member's subscription, by member id."""
        return {
            name: (
                *member.subscribed_topic_names,
                *self.regular_expressions.get(member.subscribed_topic_regex or "", ()),
            )
            for name, member in self.members.items()
        }

    def assignor(self) -> str:
        """Return the server's assignor that most members ask for; Kafka's default is uniform.

        Of several that are asked for equally often, the first by name. Source:
        ``ConsumerGroup.computePreferredServerAssignor``.
        """
        asked = Counter(one.server_assignor for one in self.members.values() if one.server_assignor)
        return min(asked, key=lambda name: (-asked[name], name), default="uniform")

    def revoking(self) -> set[str]:
        """Return the ids of the members that still have to revoke partitions."""
        return {
            member
            for member, has in self.current.items()
            if any(held.partitions for held in has.partitions_pending_revocation)
        }

    def reconciliation(
        self, member_id: str, topic_names: Mapping[bytes, str]
    ) -> MemberReconciliation | None:
        """Return how far a member is from its target; None before both are known.

        Partitions of topics without a known name are left out.
        """
        current, target = self.current.get(member_id), self.target.get(member_id)
        if current is None or target is None:
            return None
        has = _named(current.assigned_partitions, topic_names)
        return MemberReconciliation(
            current.member_epoch,
            tuple(_named(current.partitions_pending_revocation, topic_names)),
            tuple(one for one in _named(target.topic_partitions, topic_names) if one not in has),
        )

    def target_partitions(
        self, member_id: str, topic_names: Mapping[bytes, str]
    ) -> tuple[TopicPartition, ...] | None:
        """Return a member's target assignment, sorted; None if it is not known."""
        target = self.target.get(member_id)
        return None if target is None else tuple(_named(target.topic_partitions, topic_names))

    def membership(self, topic_names: Mapping[bytes, str]) -> Membership:
        """Return the group's members and the owners of partitions.

        Assignments have topic ids only; ``topic_names`` has the known names. A partition that a
        member has yet to revoke is its own until then.
        """
        members = self._members()
        owners: dict[TopicPartition, Member] = {}
        for member in members:
            current = self.current.get(member.member_id)
            if current is not None:
                held = (*current.assigned_partitions, *current.partitions_pending_revocation)
                owners.update(dict.fromkeys(_named(held, topic_names), member))
        return self._membership(self.epoch or 0, members, owners)

    def decided(self, topic_names: Mapping[bytes, str]) -> Membership:
        """Return the group's members and the owners of partitions by its last target assignment.

        Its ``generation`` is the epoch of the target assignment, and 0 before there is one. A group
        without members gets no target assignment: then it is the group's epoch. Otherwise as
        ``membership``.
        """
        members = self._members()
        owners: dict[TopicPartition, Member] = {}
        for member in members:
            target = self.target.get(member.member_id)
            if target is not None:
                owners.update(dict.fromkeys(_named(target.topic_partitions, topic_names), member))
        epoch, at_ms = 0 if members else self.epoch or 0, None
        if members and self.target_of is not None:
            epoch = self.target_of.assignment_epoch
            at_ms = positive(self.target_of.assignment_timestamp_ms)
        unnamed = any(
            held.topic_id not in topic_names
            for target in self.target.values()
            for held in target.topic_partitions
        )
        decided = self._membership(epoch, members, owners)
        return replace(decided, as_of_ms=at_ms, unnamed=unnamed)

    def _members(self) -> list[Member]:
        subscribed: dict[tuple[str, ...], frozenset[str]] = {}
        topics = self.topics_of()
        return [
            Member(
                member_id,
                read.client_id,
                read.client_host,
                instance_id=read.instance_id,
                topics=subscribed.setdefault(topics[member_id], frozenset(topics[member_id])),
                pattern=read.subscribed_topic_regex or None,
                session_timeout_ms=_session_timeout_ms(read),
                poll_interval_ms=positive(read.rebalance_timeout_ms),
            )
            for member_id, read in sorted(self.members.items())
        ]

    def _membership(
        self, epoch: int, members: list[Member], owners: Mapping[TopicPartition, Member]
    ) -> Membership:
        return Membership(
            "consumer",
            epoch,
            tuple(members),
            owners,
            self.topics(),
            longest_timeout(read.rebalance_timeout_ms for read in self.members.values()),
            self.assignor() if members else None,
            by_epochs=True,
        )


def _session_timeout_ms(member: ConsumerGroupMemberMetadata) -> int | None:
    """Return a member's session timeout, which only one on the classic protocol has of its own."""
    classic = member.classic_member_metadata
    return None if classic is None else positive(classic.session_timeout_ms)


def _named(
    held: tuple[TopicPartitions, ...], topic_names: Mapping[bytes, str]
) -> dict[TopicPartition, None]:
    """Return partitions by their topics' names, sorted."""
    named = [
        TopicPartition(topic, number)
        for each in held
        if (topic := topic_names.get(each.topic_id)) is not None
        for number in each.partitions
    ]
    return dict.fromkeys(sorted(named))
