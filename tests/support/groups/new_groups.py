"""Groups of one member on the new protocols, as their coordinator's records."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.polls.batch import Record
from caughtup.models.wire.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    ConsumerGroupRecord,
    ConsumerGroupRegularExpression,
    TopicPartitions,
)
from caughtup.models.wire.record_keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupRegularExpressionKey,
    NewGroupKey,
    RecordType,
    StreamsGroupKey,
    StreamsGroupMemberKey,
)
from caughtup.models.wire.streams_group_assignments import (
    StreamsGroupCurrentMemberAssignment,
    TaskIds,
)
from caughtup.models.wire.streams_group_records import (
    StreamsGroupMemberMetadata,
    StreamsGroupMetadata,
    StreamsGroupRecord,
)
from caughtup.models.wire.streams_group_topology import StreamsGroupTopology, Subtopology, TopicInfo
from tests.support.groups.new_group_encoders import new_group_key, new_group_record

#: The id of the only member, and of its process.
MEMBER = "m"
PROCESS = "5f2c6a4e-0000-4000-8000-000000000001"


def consumer_group(
    group: str, topic: str, topic_id: bytes, *, regex: str | None = None
) -> list[Record]:
    """Return the records of a group whose member has partitions 0 and 1 of a topic.

    ``regex``: its subscription, which was resolved to the topic.
    """
    metadata, member, current, resolved = (
        RecordType.CONSUMER_GROUP_METADATA,
        RecordType.CONSUMER_GROUP_MEMBER_METADATA,
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION,
    )
    subscribes = ConsumerGroupMemberMetadata(
        None, None, "c", "/h", (topic,), regex, 300_000, None, None
    )
    held = (TopicPartitions(topic_id, (0, 1)),)
    records = [
        _record(ConsumerGroupKey(metadata, group), ConsumerGroupMetadata(3, 0)),
        _record(ConsumerGroupMemberKey(member, group, MEMBER), subscribes),
        _record(
            ConsumerGroupMemberKey(current, group, MEMBER),
            ConsumerGroupCurrentMemberAssignment(3, 2, 0, held, ()),
        ),
    ]
    if regex is not None:
        key = ConsumerGroupRegularExpressionKey(resolved, group, regex)
        records.insert(0, _record(key, ConsumerGroupRegularExpression((topic,), 1, 0)))
    return records


def streams_group(
    group: str, topic: str, changelog: str, *, configs: Mapping[str, str] | None = None
) -> list[Record]:
    """Return the records of an application whose member runs stateful tasks 0 and 1 of a topic."""
    store = TopicInfo(changelog, 0, 0, {})
    topology = Subtopology("0", (topic,), (), (store,), (), (), ())
    tasks = (TaskIds("0", (0, 1)),)
    return [
        _record(
            StreamsGroupKey(RecordType.STREAMS_GROUP_METADATA, group),
            StreamsGroupMetadata(4, 0, 1, configs or {}, -1, -1),
        ),
        _record(
            StreamsGroupKey(RecordType.STREAMS_GROUP_TOPOLOGY, group),
            StreamsGroupTopology(1, (topology,)),
        ),
        *streams_member(
            group, StreamsGroupCurrentMemberAssignment(4, 3, 1, tasks, (), tasks, (), (), ())
        ),
    ]


def streams_member(
    group: str, held: StreamsGroupCurrentMemberAssignment, process: str = PROCESS
) -> list[Record]:
    """Return the records of an application's member and its assignment."""
    member, current = (
        RecordType.STREAMS_GROUP_MEMBER_METADATA,
        RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    )
    return [
        _record(
            StreamsGroupMemberKey(member, group, MEMBER),
            StreamsGroupMemberMetadata(None, None, "c", "/h", 1, 1, process, None, {}),
        ),
        _record(StreamsGroupMemberKey(current, group, MEMBER), held),
    ]


def _record(key: NewGroupKey, value: ConsumerGroupRecord | StreamsGroupRecord) -> Record:
    return new_group_key(key), new_group_record(value)
