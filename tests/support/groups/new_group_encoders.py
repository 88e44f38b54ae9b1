"""Encoders of the newer protocols' records for tests; caughtup only decodes them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

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
from caughtup.models.wire.record_keys import NewGroupKey
from caughtup.models.wire.streams_group_assignments import (
    StreamsGroupCurrentMemberAssignment,
    StreamsGroupTargetAssignmentMember,
    StreamsGroupTargetAssignmentMetadata,
    StreamsGroupTargetAssignmentResolvedTopicIds,
    TaskIds,
)
from caughtup.models.wire.streams_group_records import (
    StreamsGroupMemberMetadata,
    StreamsGroupMetadata,
    StreamsGroupRecord,
)
from caughtup.models.wire.streams_group_topology import StreamsGroupTopology, Subtopology, TopicInfo
from tests.support import wire
from tests.support.wire import NO_TAGS, number, tagged_fields

VERSION_0 = number("h", 0)

array = partial(wire.array, flexible=True)
string = partial(wire.string, flexible=True)
byte_string = partial(wire.byte_string, flexible=True)

Tags = dict[int, bytes]


def new_group_key(key: NewGroupKey) -> bytes:
    record_type, *names = key
    return number("h", record_type) + b"".join(map(wire.string, names))


def new_group_record(
    value: ConsumerGroupRecord | StreamsGroupRecord, unknown: Tags = NO_TAGS
) -> bytes:
    """Encode a value of version 0, with ``unknown`` tagged fields in each structure."""
    return VERSION_0 + b"".join(_fields(value, unknown))


def _fields(value: ConsumerGroupRecord | StreamsGroupRecord, unknown: Tags) -> Iterable[bytes]:
    tags: Tags = {}
    match value:
        case ConsumerGroupMetadata(epoch, metadata_hash):
            yield number("i", epoch)
            tags = {0: number("q", metadata_hash)} if metadata_hash else {}
        case ConsumerGroupPartitionMetadata(topics) | StreamsGroupPartitionMetadata(topics):
            yield array(topic_metadata(topic, unknown) for topic in topics)
        case ConsumerGroupMemberMetadata():
            yield string(value.instance_id) + string(value.rack_id)
            yield string(value.client_id) + string(value.client_host)
            yield array(map(string, value.subscribed_topic_names))
            yield string(value.subscribed_topic_regex)
            yield number("i", value.rebalance_timeout_ms) + string(value.server_assignor)
            if value.classic_member_metadata is not None:
                tags = {0: classic_member_metadata(value.classic_member_metadata, unknown)}
        case ConsumerGroupTargetAssignmentMetadata(
            epoch, timestamp_ms
        ) | StreamsGroupTargetAssignmentMetadata(epoch, timestamp_ms):
            yield number("i", epoch)
            tags = {0: number("q", timestamp_ms)} if timestamp_ms else {}
        case ConsumerGroupTargetAssignmentMember(topics):
            yield array(topic_partitions(topic, unknown) for topic in topics)
        case ConsumerGroupCurrentMemberAssignment():
            yield number("i", value.member_epoch) + number("i", value.previous_member_epoch)
            yield number("b", value.state)
            for topics in (value.assigned_partitions, value.partitions_pending_revocation):
                yield array(topic_partitions(topic, unknown) for topic in topics)
        case ConsumerGroupRegularExpression(names, version, timestamp_ms):
            yield array(map(string, names)) + number("q", version) + number("q", timestamp_ms)
        case StreamsGroupMetadata():
            yield number("i", value.epoch) + number("q", value.metadata_hash)
            epochs = {
                0: value.validated_topology_epoch,
                2: value.stored_description_topology_epoch,
                3: value.failed_description_topology_epoch,
            }
            tags = {tag: number("i", epoch) for tag, epoch in epochs.items() if epoch != -1}
            if value.last_assignment_configs:
                tags[1] = entries(value.last_assignment_configs, unknown)
        case StreamsGroupMemberMetadata():
            yield string(value.instance_id) + string(value.rack_id)
            yield string(value.client_id) + string(value.client_host)
            yield number("i", value.rebalance_timeout_ms) + number("i", value.topology_epoch)
            yield string(value.process_id)
            if value.user_endpoint is None:
                yield number("b", -1)
            else:
                yield number("b", 1) + string(value.user_endpoint.host)
                yield number("H", value.user_endpoint.port) + tagged_fields(unknown)
            yield entries(value.client_tags, unknown)
        case StreamsGroupTargetAssignmentMember():
            for tasks in (value.active_tasks, value.standby_tasks, value.warmup_tasks):
                yield array(task_ids(ids, unknown) for ids in tasks)
        case StreamsGroupCurrentMemberAssignment():
            yield number("i", value.member_epoch) + number("i", value.previous_member_epoch)
            yield number("b", value.state)
            for tasks in (
                value.active_tasks,
                value.standby_tasks,
                value.warmup_tasks,
                value.active_tasks_pending_revocation,
                value.standby_tasks_pending_revocation,
                value.warmup_tasks_pending_revocation,
            ):
                yield array(task_ids(ids, unknown) for ids in tasks)
        case StreamsGroupTopology(epoch, subtopologies):
            yield number("i", epoch) + array(subtopology(one, unknown) for one in subtopologies)
        case StreamsGroupTargetAssignmentResolvedTopicIds(epoch, topic_ids):
            yield number("i", epoch)
            yield array(
                string(name) + array(ids) + tagged_fields(unknown)
                for name, ids in topic_ids.items()
            )
    yield tagged_fields(unknown | tags)


def numbers(layout: str, values: Iterable[int]) -> bytes:
    return array(number(layout, value) for value in values)


def entries(values: dict[str, str], unknown: Tags) -> bytes:
    return array(
        string(key) + string(value) + tagged_fields(unknown) for key, value in values.items()
    )


def topic_metadata(topic: TopicMetadata, unknown: Tags) -> bytes:
    partitions = (
        number("i", partition) + array(map(string, racks)) + tagged_fields(unknown)
        for partition, racks in topic.partition_racks.items()
    )
    return (
        topic.topic_id
        + string(topic.topic_name)
        + number("i", topic.num_partitions)
        + array(partitions)
        + tagged_fields(unknown)
    )


def classic_member_metadata(value: ClassicMemberMetadata, unknown: Tags) -> bytes:
    protocols = (
        string(name) + byte_string(subscription) + tagged_fields(unknown)
        for name, subscription in value.supported_protocols.items()
    )
    timeout = number("i", value.session_timeout_ms)
    return number("b", 1) + timeout + array(protocols) + tagged_fields(unknown)


def topic_partitions(topic: TopicPartitions, unknown: Tags) -> bytes:
    tags = unknown | assignment_epochs(topic.assignment_epochs)
    return topic.topic_id + numbers("i", topic.partitions) + tagged_fields(tags)


def task_ids(tasks: TaskIds, unknown: Tags) -> bytes:
    tags = unknown | assignment_epochs(tasks.assignment_epochs)
    return string(tasks.subtopology_id) + numbers("i", tasks.partitions) + tagged_fields(tags)


def assignment_epochs(epochs: tuple[int, ...]) -> Tags:
    return {0: numbers("i", epochs)} if epochs else {}


def subtopology(value: Subtopology, unknown: Tags) -> bytes:
    groups = (
        numbers("h", group.source_topics)
        + numbers("h", group.source_topic_regex)
        + numbers("h", group.repartition_source_topics)
        + tagged_fields(unknown)
        for group in value.copartition_groups
    )
    return b"".join(
        (
            string(value.subtopology_id),
            array(map(string, value.source_topics)),
            array(map(string, value.source_topic_regex)),
            array(topic_info(topic, unknown) for topic in value.state_changelog_topics),
            array(map(string, value.repartition_sink_topics)),
            array(topic_info(topic, unknown) for topic in value.repartition_source_topics),
            array(groups),
            tagged_fields(unknown),
        )
    )


def topic_info(topic: TopicInfo, unknown: Tags) -> bytes:
    return (
        string(topic.name)
        + number("i", topic.partitions)
        + number("h", topic.replication_factor)
        + entries(topic.topic_configs, unknown)
        + tagged_fields(unknown)
    )
