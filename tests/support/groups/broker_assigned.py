"""A streams group (KIP-1071) of two instances, and a state that has read it."""

from __future__ import annotations

from caughtup.models.groups.streams import StreamsGroup
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.record_keys import RecordType, StreamsGroupKey, StreamsGroupMemberKey
from caughtup.models.wire.streams_group_assignments import (
    StreamsGroupCurrentMemberAssignment,
    TaskIds,
)
from caughtup.models.wire.streams_group_records import (
    StreamsGroupMemberMetadata,
    StreamsGroupMetadata,
)
from caughtup.models.wire.streams_group_topology import (
    StreamsGroupTopology,
    Subtopology,
    TopicInfo,
)

NOW_MS = 1_700_000_000_000
PROCESSES = {"a": "5f2c6a4e-0000-4000-8000-000000000001", "b": "any other client's"}
TOPOLOGY = StreamsGroupTopology(
    1,
    (Subtopology("0", ("orders",), (), (TopicInfo("counts-changelog", 0, 0, {}),), (), (), ()),),
)


def streams_group(standbys: int = 1) -> StreamsGroup:
    """Return a group of four tasks: ``a`` runs 0_0 and 0_1, ``b`` the rest; each has one standby."""
    group = StreamsGroup()
    configs = {"num.standby.replicas": str(standbys)}
    metadata = StreamsGroupMetadata(4, 0, 1, configs, -1, -1)
    group.apply(StreamsGroupKey(RecordType.STREAMS_GROUP_METADATA, "orders"), metadata)
    group.apply(StreamsGroupKey(RecordType.STREAMS_GROUP_TOPOLOGY, "orders"), TOPOLOGY)
    for name, active, standby in (("a", (0, 1), (2, 3)), ("b", (2, 3), (0, 1))):
        member = f"{name}-member"
        client = f"{name}-StreamThread-1-consumer"
        group.apply(
            StreamsGroupMemberKey(RecordType.STREAMS_GROUP_MEMBER_METADATA, "orders", member),
            StreamsGroupMemberMetadata(None, None, client, "/h", 1, 1, PROCESSES[name], None, {}),
        )
        group.apply(
            StreamsGroupMemberKey(
                RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, "orders", member
            ),
            StreamsGroupCurrentMemberAssignment(
                4,
                4,
                1,
                active_tasks=(TaskIds("0", active),),
                standby_tasks=(TaskIds("0", standby if standbys else ()),),
                warmup_tasks=(),
                active_tasks_pending_revocation=(),
                standby_tasks_pending_revocation=(),
                warmup_tasks_pending_revocation=(),
            ),
        )
    return group


def state_of(group: StreamsGroup, partitions: int = 4) -> ClusterState:
    """Return a state with the group, and with the end offsets of its topics' partitions."""
    state = ClusterState("cluster-1", {})
    state.groups.streams["orders"] = group
    for number in range(partitions):
        for topic, end in (("orders", 50), ("counts-changelog", 9_000)):
            state.ends.apply(TopicPartition(topic, number), EndOffsets(0, end, end, NOW_MS))
    return state
