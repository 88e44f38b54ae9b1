"""A Kafka Streams application on the new protocol: what its records add up to."""

from __future__ import annotations

from caughtup.models.groups.membership import Member, MemberReconciliation
from caughtup.models.groups.streams import StreamsGroup, StreamsTask
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.wire.record_keys import RecordType, StreamsGroupKey, StreamsGroupMemberKey
from caughtup.models.wire.streams_group_assignments import (
    StreamsGroupCurrentMemberAssignment,
    StreamsGroupTargetAssignmentMember,
    TaskIds,
)
from caughtup.models.wire.streams_group_records import (
    StreamsGroupMemberMetadata,
    StreamsGroupMetadata,
)
from caughtup.models.wire.streams_group_topology import StreamsGroupTopology, Subtopology, TopicInfo

GROUP = "orders"
TOPOLOGY = StreamsGroupTopology(
    1,
    (
        Subtopology("0", ("orders-in",), (), (), ("orders-repartition",), (), ()),
        Subtopology(
            "1",
            (),
            (),
            (TopicInfo("orders-counts-changelog", 0, 0, {}),),
            (),
            (TopicInfo("orders-repartition", 2, 0, {}),),
            (),
        ),
    ),
)
PROCESS = "5f2c6a4e-0000-4000-8000-000000000001"


def key(record_type: RecordType) -> StreamsGroupKey:
    return StreamsGroupKey(record_type, GROUP)


def member_key(record_type: RecordType) -> StreamsGroupMemberKey:
    return StreamsGroupMemberKey(record_type, GROUP, "m1")


def application() -> StreamsGroup:
    group = StreamsGroup()
    configs = {"num.standby.replicas": "1"}
    group.apply(
        key(RecordType.STREAMS_GROUP_METADATA), StreamsGroupMetadata(4, 0, 1, configs, -1, -1)
    )
    group.apply(key(RecordType.STREAMS_GROUP_TOPOLOGY), TOPOLOGY)
    group.apply(
        member_key(RecordType.STREAMS_GROUP_MEMBER_METADATA),
        StreamsGroupMemberMetadata(None, None, "app", "/10.0.0.1", 1, 1, PROCESS, None, {}),
    )
    group.apply(
        member_key(RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT),
        StreamsGroupCurrentMemberAssignment(
            4,
            3,
            1,
            active_tasks=(TaskIds("0", (1, 0)),),
            standby_tasks=(TaskIds("1", (0,)),),
            warmup_tasks=(TaskIds("1", (1,)),),
            active_tasks_pending_revocation=(TaskIds("1", (7,)),),
            standby_tasks_pending_revocation=(),
            warmup_tasks_pending_revocation=(),
        ),
    )
    return group


MEMBER = Member("m1", "app", "/10.0.0.1", PROCESS, poll_interval_ms=1)


def test_every_copy_is_told_with_its_role() -> None:
    assert list(application().copies()) == [
        StreamsTask(TaskId(0, 0), "active", MEMBER),
        StreamsTask(TaskId(0, 1), "active", MEMBER),
        StreamsTask(TaskId(1, 7), "active", MEMBER),
        StreamsTask(TaskId(1, 0), "standby", MEMBER),
        StreamsTask(TaskId(1, 1), "warmup", MEMBER),
    ]


def test_actives_read_the_partitions_that_their_source_topics_have() -> None:
    membership = application().membership({"orders-in": 1, "orders-repartition": 8})
    assert membership.group_type == "streams"
    assert membership.owners == {
        TopicPartition("orders-in", 0): MEMBER,
        TopicPartition("orders-repartition", 7): MEMBER,
    }


def test_the_topology_names_the_changelogs() -> None:
    group = application()
    assert group.changelogs() == {0: (), 1: ("orders-counts-changelog",)}
    topics = {"orders-in", "orders-repartition", "orders-counts-changelog"}
    assert group.membership({}).topics == topics


def test_tombstones_take_the_member_away_and_at_last_the_group() -> None:
    group = application()
    for record_type in (
        RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        RecordType.STREAMS_GROUP_MEMBER_METADATA,
    ):
        group.apply(member_key(record_type), None)
    assert group.membership({}).members == ()
    for record_type in (RecordType.STREAMS_GROUP_TOPOLOGY, RecordType.STREAMS_GROUP_METADATA):
        assert not group.is_empty()
        group.apply(key(record_type), None)
    assert group.is_empty()


def test_a_member_is_as_far_from_its_target_as_its_records_say() -> None:
    group, counts = application(), {"orders-in": 3, "orders-repartition": 8}
    assert group.reconciliation("m1", counts) is None
    group.apply(
        member_key(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER),
        StreamsGroupTargetAssignmentMember((TaskIds("0", (0, 2)),), (), ()),
    )
    assert group.reconciliation("m1", counts) == MemberReconciliation(
        4, (TopicPartition("orders-repartition", 7),), (TopicPartition("orders-in", 2),)
    )
    assert group.revoking() == {"m1"}
