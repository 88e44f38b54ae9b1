"""A group on the new protocol: what its records add up to."""

from __future__ import annotations

from dataclasses import replace

from caughtup.models.groups.consumer import ConsumerGroup
from caughtup.models.groups.membership import Member, MemberReconciliation
from caughtup.models.ids import TopicPartition
from caughtup.models.wire.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
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

GROUP = "billing"
CLICKS = b"c" * 16
EPOCH = ConsumerGroupKey(RecordType.CONSUMER_GROUP_METADATA, GROUP)


def metadata(*topics: str, regex: str | None = None) -> ConsumerGroupMemberMetadata:
    return ConsumerGroupMemberMetadata(
        None, None, "app", "/10.0.0.1", topics, regex, 300_000, None, None
    )


def assignment(
    held: tuple[int, ...], leaving: tuple[int, ...] = ()
) -> ConsumerGroupCurrentMemberAssignment:
    return ConsumerGroupCurrentMemberAssignment(
        3, 2, 0, (TopicPartitions(CLICKS, held),), (TopicPartitions(CLICKS, leaving),)
    )


def member_key(member: str) -> ConsumerGroupMemberKey:
    return ConsumerGroupMemberKey(RecordType.CONSUMER_GROUP_MEMBER_METADATA, GROUP, member)


def target_key(member: str) -> ConsumerGroupMemberKey:
    return ConsumerGroupMemberKey(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, GROUP, member)


def current_key(member: str) -> ConsumerGroupMemberKey:
    return ConsumerGroupMemberKey(
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, GROUP, member
    )


def two_members() -> ConsumerGroup:
    group = ConsumerGroup()
    group.apply(EPOCH, ConsumerGroupMetadata(3, 0))
    for name, held, leaving in (("m1", (0,), (2,)), ("m2", (1,), ())):
        group.apply(member_key(name), metadata("clicks"))
        group.apply(current_key(name), assignment(held, leaving))
    return group


def test_each_partition_is_its_members_until_it_has_let_go_of_it() -> None:
    membership = two_members().membership({CLICKS: "clicks"})
    assert membership.group_type == "consumer"
    assert membership.generation == 3
    first, second = (
        Member(name, "app", "/10.0.0.1", topics=frozenset({"clicks"}), poll_interval_ms=300_000)
        for name in ("m1", "m2")
    )
    assert membership.members == (first, second)
    assert membership.owners == {
        TopicPartition("clicks", 0): first,
        TopicPartition("clicks", 2): first,
        TopicPartition("clicks", 1): second,
    }


def test_what_is_decided_is_the_target_of_its_epoch() -> None:
    group = two_members()
    metadata_key = ConsumerGroupKey(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, GROUP)
    group.apply(metadata_key, ConsumerGroupTargetAssignmentMetadata(4, 1_800_000_000_000))
    group.apply(
        target_key("m2"), ConsumerGroupTargetAssignmentMember((TopicPartitions(CLICKS, (0, 1)),))
    )
    decided = group.decided({CLICKS: "clicks"})
    assert (decided.generation, decided.as_of_ms) == (4, 1_800_000_000_000)
    owners = {partition: member.member_id for partition, member in decided.owners.items()}
    assert owners == {TopicPartition("clicks", 0): "m2", TopicPartition("clicks", 1): "m2"}
    for name in ("m1", "m2"):
        group.apply(member_key(name), None)
    assert (group.decided({}).generation, group.decided({}).members) == (3, ())


def test_a_topic_whose_name_isnt_known_yet_is_left_out() -> None:
    membership = two_members().membership({})
    assert membership.owners == {}
    assert membership.topics == {"clicks"}


def test_a_regular_expression_stands_for_the_topics_that_the_coordinator_found() -> None:
    group = two_members()
    group.apply(member_key("m3"), metadata(regex="pay.*"))
    key = ConsumerGroupRegularExpressionKey(
        RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, GROUP, "pay.*"
    )
    group.apply(key, ConsumerGroupRegularExpression(("payments", "payouts"), 1, 0))
    assert group.topics() == {"clicks", "payments", "payouts"}
    group.apply(key, None)
    assert group.topics() == {"clicks"}


def test_tombstones_take_a_member_away_and_at_last_the_group() -> None:
    group = two_members()
    for name in ("m1", "m2"):
        group.apply(current_key(name), None)
        group.apply(member_key(name), None)
    assert group.membership({CLICKS: "clicks"}).members == ()
    assert not group.is_empty()
    group.apply(EPOCH, None)
    assert group.is_empty()


def test_a_member_is_as_far_from_its_target_as_its_records_say() -> None:
    group = two_members()
    names = {CLICKS: "clicks"}
    assert group.reconciliation("m1", names) is None
    key = ConsumerGroupKey(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, GROUP)
    group.apply(key, ConsumerGroupTargetAssignmentMetadata(4, 1_000))
    for member, numbers in (("m1", (0,)), ("m2", (1, 2))):
        target = ConsumerGroupTargetAssignmentMember((TopicPartitions(CLICKS, numbers),))
        group.apply(target_key(member), target)
    two, one = TopicPartition("clicks", 2), group.reconciliation("m1", names)
    assert one == MemberReconciliation(3, (two,), ())
    assert group.reconciliation("m2", names) == MemberReconciliation(3, (), (two,))
    assert group.revoking() == {"m1"}
    assert group.reconciliation("m2", {}) == MemberReconciliation(3, (), ())
    assert group.target_of == ConsumerGroupTargetAssignmentMetadata(4, 1_000)
    group.apply(target_key("m1"), None)
    assert group.reconciliation("m1", names) is None


def test_a_group_is_gone_once_its_last_target_is() -> None:
    group = ConsumerGroup()
    key = ConsumerGroupKey(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, GROUP)
    group.apply(key, ConsumerGroupTargetAssignmentMetadata(4, 0))
    group.apply(target_key("m1"), ConsumerGroupTargetAssignmentMember(()))
    group.apply(key, None)
    assert not group.is_empty()
    group.apply(target_key("m1"), None)
    assert group.is_empty()


def test_its_assignor_is_what_most_members_ask_for() -> None:
    group = ConsumerGroup()
    assert group.assignor() == "uniform"
    for name, asked in (("m1", "range"), ("m2", None), ("m3", "uniform"), ("m4", "range")):
        group.apply(member_key(name), replace(metadata("clicks"), server_assignor=asked))
    assert group.assignor() == "range"
    assert group.topics_of()["m2"] == ("clicks",)
