"""Hypothesis strategies for the newer protocols' records: every key, every value."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from caughtup.models.offsets import LONG_MAX
from caughtup.models.wire.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    ConsumerGroupRecord,
    ConsumerGroupRegularExpression,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata,
    TopicPartitions,
)
from caughtup.models.wire.partition_metadata import (
    ConsumerGroupPartitionMetadata,
    StreamsGroupPartitionMetadata,
    TopicMetadata,
)
from caughtup.models.wire.record_keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupRegularExpressionKey,
    NewGroupKey,
    RecordType,
    ShareGroupKey,
    ShareGroupMemberKey,
    StreamsGroupKey,
    StreamsGroupMemberKey,
)
from caughtup.models.wire.streams_group_assignments import (
    StreamsGroupCurrentMemberAssignment,
    StreamsGroupTargetAssignmentMember,
    StreamsGroupTargetAssignmentMetadata,
    StreamsGroupTargetAssignmentResolvedTopicIds,
    TaskIds,
)
from caughtup.models.wire.streams_group_records import (
    Endpoint,
    StreamsGroupMemberMetadata,
    StreamsGroupMetadata,
    StreamsGroupRecord,
)
from caughtup.models.wire.streams_group_topology import (
    CopartitionGroup,
    StreamsGroupTopology,
    Subtopology,
    TopicInfo,
)
from tests.models.wire.strategies import (
    epochs,
    int8,
    int32,
    int64,
    known_times,
    names,
    partitions,
    raw_bytes,
    times,
)

uuids = st.binary(min_size=16, max_size=16)
int16 = st.integers(-(1 << 15), (1 << 15) - 1)
maybe_names = st.none() | names


def some(elements: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(elements, max_size=3).map(tuple)


many_names = some(names)
entries = st.dictionaries(names, names, max_size=3)
topic_metadata = st.builds(
    TopicMetadata, uuids, names, partitions, st.dictionaries(partitions, many_names, max_size=3)
)
target_partitions = st.builds(TopicPartitions, uuids, some(partitions))
current_partitions = st.builds(TopicPartitions, uuids, some(partitions), some(int32))
target_tasks = st.builds(TaskIds, names, some(partitions))
current_tasks = st.builds(TaskIds, names, some(partitions), some(int32))
topic_infos = st.builds(TopicInfo, names, partitions, st.integers(-1, (1 << 15) - 1), entries)
copartition_groups = st.builds(CopartitionGroup, some(int16), some(int16), some(int16))
subtopologies = st.builds(
    Subtopology,
    subtopology_id=names,
    source_topics=many_names,
    source_topic_regex=many_names,
    state_changelog_topics=some(topic_infos),
    repartition_sink_topics=many_names,
    repartition_source_topics=some(topic_infos),
    copartition_groups=some(copartition_groups),
)
# Kafka leaves one that is all empty out.
classic_members = st.builds(
    ClassicMemberMetadata, int32, st.dictionaries(names, raw_bytes, max_size=3)
).filter(lambda member: member.session_timeout_ms or member.supported_protocols)

#: What members of both have.
member: dict[str, st.SearchStrategy[Any]] = {
    "instance_id": maybe_names,
    "rack_id": maybe_names,
    "client_id": names,
    "client_host": names,
    "rebalance_timeout_ms": int32,
}

CONSUMER_GROUP_RECORDS: dict[RecordType, st.SearchStrategy[ConsumerGroupRecord]] = {
    RecordType.CONSUMER_GROUP_METADATA: st.builds(
        ConsumerGroupMetadata, epochs, st.just(0) | int64
    ),
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: st.builds(
        ConsumerGroupPartitionMetadata, some(topic_metadata)
    ),
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: st.builds(
        ConsumerGroupMemberMetadata,
        **member,
        subscribed_topic_names=many_names,
        subscribed_topic_regex=maybe_names,
        server_assignor=maybe_names,
        classic_member_metadata=st.none() | classic_members,
    ),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: st.builds(
        ConsumerGroupTargetAssignmentMetadata, epochs, st.just(0) | times
    ),
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: st.builds(
        ConsumerGroupTargetAssignmentMember, some(target_partitions)
    ),
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: st.builds(
        ConsumerGroupCurrentMemberAssignment,
        epochs,
        epochs,
        int8,
        some(current_partitions),
        some(current_partitions),
    ),
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: st.builds(
        ConsumerGroupRegularExpression, many_names, st.integers(-1, LONG_MAX), known_times
    ),
}
STREAMS_GROUP_RECORDS: dict[RecordType, st.SearchStrategy[StreamsGroupRecord]] = {
    RecordType.STREAMS_GROUP_METADATA: st.builds(
        StreamsGroupMetadata,
        epoch=epochs,
        metadata_hash=int64,
        validated_topology_epoch=epochs,
        last_assignment_configs=entries,
        stored_description_topology_epoch=epochs,
        failed_description_topology_epoch=epochs,
    ),
    RecordType.STREAMS_GROUP_PARTITION_METADATA: st.builds(
        StreamsGroupPartitionMetadata, some(topic_metadata)
    ),
    RecordType.STREAMS_GROUP_MEMBER_METADATA: st.builds(
        StreamsGroupMemberMetadata,
        **member,
        topology_epoch=epochs,
        process_id=names,
        user_endpoint=st.none() | st.builds(Endpoint, names, st.integers(0, 65535)),
        client_tags=entries,
    ),
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: st.builds(
        StreamsGroupTargetAssignmentMetadata, epochs, st.just(0) | times
    ),
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: st.builds(
        StreamsGroupTargetAssignmentMember, *[some(target_tasks)] * 3
    ),
    RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: st.builds(
        StreamsGroupCurrentMemberAssignment, epochs, epochs, int8, *[some(current_tasks)] * 6
    ),
    RecordType.STREAMS_GROUP_TOPOLOGY: st.builds(StreamsGroupTopology, epochs, some(subtopologies)),
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_RESOLVED_TOPIC_IDS: st.builds(
        StreamsGroupTargetAssignmentResolvedTopicIds,
        epochs,
        st.dictionaries(names, some(uuids), max_size=3),
    ),
}


def _keys(record_type: RecordType) -> st.SearchStrategy[NewGroupKey]:
    is_type = st.just(record_type)
    if record_type is RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION:
        return st.builds(ConsumerGroupRegularExpressionKey, is_type, names, names)
    protocol = record_type.name.partition("_")[0]
    if record_type.name.endswith(("_MEMBER", "MEMBER_METADATA", "_MEMBER_ASSIGNMENT")):
        of_member = {
            "CONSUMER": ConsumerGroupMemberKey,
            "SHARE": ShareGroupMemberKey,
            "STREAMS": StreamsGroupMemberKey,
        }
        return st.builds(of_member[protocol], is_type, names, names)
    of_group = {"CONSUMER": ConsumerGroupKey, "SHARE": ShareGroupKey, "STREAMS": StreamsGroupKey}
    return st.builds(of_group[protocol], is_type, names)


#: Keys of each type of the newer protocols.
NEW_GROUP_KEYS = {t: _keys(t) for t in RecordType if t > RecordType.GROUP_METADATA}
