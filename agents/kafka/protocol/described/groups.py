"""The answers to DescribeGroups and its successors: members, subscriptions and assignments.

Each is decoded to the records that its coordinator writes to ``__consumer_offsets``, as far as the
answer has what is in them. What it hasn't is: the generation of a classic group, its leader and its
timeouts; of groups on the newer protocols the timeouts, the members' former epochs, what a member
still has to revoke, and the topics that match a regular expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from caughtup.agents.kafka.protocol.described.share_groups import read_share_group
from caughtup.agents.kafka.protocol.requests import Key
from caughtup.models.polls.asked import AskedKey, AskedRecord
from caughtup.models.wire.bounds import epoch, partitions
from caughtup.models.wire.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata,
    TopicPartitions,
)
from caughtup.models.wire.consumer_offsets import GroupKey
from caughtup.models.wire.group_metadata import GroupMember, GroupMetadata
from caughtup.models.wire.reader import FlexibleReader
from caughtup.models.wire.record_keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    RecordType,
    ShareGroupKey,
    StreamsGroupKey,
    StreamsGroupMemberKey,
)
from caughtup.models.wire.streams_group_assignments import (
    StreamsGroupCurrentMemberAssignment,
    StreamsGroupTargetAssignmentMember,
    StreamsGroupTargetAssignmentMetadata,
    TaskIds,
)
from caughtup.models.wire.streams_group_records import (
    StreamsGroupMemberMetadata,
    StreamsGroupMetadata,
    read_endpoint,
)
from caughtup.models.wire.streams_group_topology import (
    StreamsGroupTopology,
    Subtopology,
    read_topic_info,
)

#: The least bytes of a structure in an array: its tagged fields.
_LEAST = 1
_UNKNOWN_TIMEOUT = _UNKNOWN_GENERATION = -1
_UNKNOWN_TIME_MS = -1
_NO_EPOCH = -1
#: A member's states in its record: stable, and not known, which means that it differs from its target.
_CONSUMER_STABLE, _STREAMS_STABLE, _UNKNOWN_STATE = 0, 1, 127
#: The type of a member of a consumer group that is still on the classic protocol.
_CLASSIC_MEMBER = 0
#: Kafka's names for a classic group's states: in the last two its members and assignments are hidden.
STABLE, EMPTY, DEAD = "Stable", "Empty", "Dead"


class GroupRecords(NamedTuple):
    """The answer about one group: an error code, or the group's records by their keys.

    ``records`` is None while a rebalance hides them, and empty for a group that does not exist.
    """

    group: str
    error_code: int
    records: Mapping[AskedKey, AskedRecord] | None


def decode_described_groups(data: bytes, key: Key, version: int) -> list[GroupRecords]:
    """Decode the answer to DescribeGroups v5, ConsumerGroupDescribe v0 or v1, StreamsGroupDescribe v0
    or ShareGroupDescribe v1.

    Raises DecodeError.
    """
    reader = FlexibleReader(data)
    reader.int32()  # throttle time
    read = _READERS[key]
    found = reader.array(lambda one: read(one, version), _LEAST)
    reader.tagged_fields()
    reader.expect_end()
    return list(found)


def _classic_group(reader: FlexibleReader, _: int) -> GroupRecords:
    code, group, state = reader.int16(), reader.string(), reader.string()
    protocol_type, protocol = reader.string(), reader.string()
    members = reader.array(_classic_member, _LEAST)
    reader.int32()  # operations
    reader.tagged_fields()
    if code or state == DEAD:
        return GroupRecords(group, code, {})
    if state not in (STABLE, EMPTY):
        return GroupRecords(group, code, None)
    metadata = GroupMetadata(
        protocol_type, _UNKNOWN_GENERATION, protocol or None, None, _UNKNOWN_TIME_MS, members
    )
    return GroupRecords(group, code, {GroupKey(group): metadata})


def _classic_member(reader: FlexibleReader) -> GroupMember:
    # Keyword arguments are evaluated as written, and that is the order on the wire.
    member = GroupMember(
        member_id=reader.string(),
        group_instance_id=reader.nullable_string(),
        client_id=reader.string(),
        client_host=reader.string(),
        rebalance_timeout_ms=_UNKNOWN_TIMEOUT,
        session_timeout_ms=_UNKNOWN_TIMEOUT,
        subscription=reader.byte_string(),
        assignment=reader.byte_string(),
    )
    reader.tagged_fields()
    return member


def _consumer_group(reader: FlexibleReader, version: int) -> GroupRecords:
    code = reader.int16()
    reader.nullable_string()  # the error in words
    group = reader.string()
    reader.string()  # its state, which its members' epochs tell, too
    group_epoch, assignment_epoch = epoch(reader.int32()), epoch(reader.int32())
    assignor = reader.string()
    records: dict[AskedKey, AskedRecord] = {
        ConsumerGroupKey(RecordType.CONSUMER_GROUP_METADATA, group): ConsumerGroupMetadata(
            group_epoch, 0
        ),
        ConsumerGroupKey(
            RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, group
        ): ConsumerGroupTargetAssignmentMetadata(assignment_epoch, 0),
    }
    for _ in range(reader.array_length(_LEAST)):
        _consumer_member(reader, version, group, assignor, records)
    reader.int32()  # operations
    reader.tagged_fields()
    return GroupRecords(group, code, {} if code else records)


def _consumer_member(
    reader: FlexibleReader,
    version: int,
    group: str,
    assignor: str,
    records: dict[AskedKey, AskedRecord],
) -> None:
    member_id, instance_id = reader.string(), reader.nullable_string()
    rack_id = reader.nullable_string()
    member_epoch = epoch(reader.int32())
    client_id, client_host = reader.string(), reader.string()
    topics, regular_expression = reader.strings(), reader.nullable_string()
    assigned, target = _topic_partitions(reader), _topic_partitions(reader)
    member_type = reader.int8() if version >= 1 else None
    reader.tagged_fields()
    classic = ClassicMemberMetadata(_UNKNOWN_TIMEOUT, {})

    def key(record_type: RecordType) -> ConsumerGroupMemberKey:
        return ConsumerGroupMemberKey(record_type, group, member_id)

    # The answer names the assignor that most members ask for: each is taken to ask for it.
    records[key(RecordType.CONSUMER_GROUP_MEMBER_METADATA)] = ConsumerGroupMemberMetadata(
        instance_id,
        rack_id,
        client_id,
        client_host,
        topics,
        regular_expression or None,
        _UNKNOWN_TIMEOUT,
        assignor or None,
        classic if member_type == _CLASSIC_MEMBER else None,
    )
    records[key(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER)] = (
        ConsumerGroupTargetAssignmentMember(target)
    )
    is_stable = sorted(assigned, key=_topic_id) == sorted(target, key=_topic_id)
    records[key(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT)] = (
        ConsumerGroupCurrentMemberAssignment(
            member_epoch,
            member_epoch,
            _CONSUMER_STABLE if is_stable else _UNKNOWN_STATE,
            assigned,
            (),
        )
    )


def _topic_id(held: TopicPartitions) -> tuple[bytes, tuple[int, ...]]:
    return held.topic_id, held.partitions


def _topic_partitions(reader: FlexibleReader) -> tuple[TopicPartitions, ...]:
    def held(one: FlexibleReader) -> TopicPartitions:
        topic_id, _, numbers = one.uuid(), one.string(), partitions(one.int32s())
        one.tagged_fields()
        return TopicPartitions(topic_id, tuple(sorted(numbers)))

    found = reader.array(held, _LEAST)
    reader.tagged_fields()
    return found


def _streams_group(reader: FlexibleReader, _: int) -> GroupRecords:
    found = read_streams_group(reader)
    reader.tagged_fields()
    return found


def read_streams_group(reader: FlexibleReader) -> GroupRecords:
    """Read what StreamsGroupDescribe answers about one group, up to what version 0 ends with.

    Raises DecodeError.
    """
    code = reader.int16()
    reader.nullable_string()  # the error in words
    group = reader.string()
    reader.string()  # its state, which its members' epochs tell, too
    group_epoch, assignment_epoch = epoch(reader.int32()), epoch(reader.int32())
    topology = None if reader.is_null() else _topology(reader)
    validated = _NO_EPOCH if topology is None else topology.epoch
    records: dict[AskedKey, AskedRecord] = {
        StreamsGroupKey(RecordType.STREAMS_GROUP_METADATA, group): StreamsGroupMetadata(
            group_epoch, 0, validated, {}, _NO_EPOCH, _NO_EPOCH
        ),
        StreamsGroupKey(
            RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, group
        ): StreamsGroupTargetAssignmentMetadata(assignment_epoch, 0),
    }
    if topology is not None:
        records[StreamsGroupKey(RecordType.STREAMS_GROUP_TOPOLOGY, group)] = topology
    for _ in range(reader.array_length(_LEAST)):
        _streams_member(reader, group, records)
    reader.int32()  # operations
    return GroupRecords(group, code, {} if code else records)


def _topology(reader: FlexibleReader) -> StreamsGroupTopology:
    topology_epoch = epoch(reader.int32())
    subtopologies = reader.nullable_array(_subtopology, _LEAST)
    reader.tagged_fields()
    return StreamsGroupTopology(topology_epoch, subtopologies)


def _subtopology(reader: FlexibleReader) -> Subtopology:
    name, sources, sinks = reader.string(), reader.strings(), reader.strings()
    changelogs, repartition_sources = (
        reader.array(read_topic_info, _LEAST),
        reader.array(read_topic_info, _LEAST),
    )
    reader.tagged_fields()
    return Subtopology(name, sources, (), changelogs, sinks, repartition_sources, ())


def _streams_member(
    reader: FlexibleReader, group: str, records: dict[AskedKey, AskedRecord]
) -> None:
    member_id, member_epoch = reader.string(), epoch(reader.int32())
    metadata = StreamsGroupMemberMetadata(
        instance_id=reader.nullable_string(),
        rack_id=reader.nullable_string(),
        client_id=reader.string(),
        client_host=reader.string(),
        rebalance_timeout_ms=_UNKNOWN_TIMEOUT,
        topology_epoch=epoch(reader.int32()),
        process_id=reader.string(),
        user_endpoint=None if reader.is_null() else read_endpoint(reader),
        client_tags=reader.entries(),
    )
    for _ in ("offsets", "end offsets"):  # brokers leave them empty so far
        reader.array(_skip_offset, _LEAST)
    assigned, target = _tasks(reader), _tasks(reader)
    reader.int8()  # whether it is on the classic protocol
    reader.tagged_fields()

    def key(record_type: RecordType) -> StreamsGroupMemberKey:
        return StreamsGroupMemberKey(record_type, group, member_id)

    records[key(RecordType.STREAMS_GROUP_MEMBER_METADATA)] = metadata
    records[key(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER)] = (
        StreamsGroupTargetAssignmentMember(*target)
    )
    records[key(RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT)] = (
        StreamsGroupCurrentMemberAssignment(
            member_epoch,
            member_epoch,
            _STREAMS_STABLE if assigned == target else _UNKNOWN_STATE,
            *assigned,
            (),
            (),
            (),
        )
    )


_Tasks = tuple[tuple[TaskIds, ...], tuple[TaskIds, ...], tuple[TaskIds, ...]]


def _tasks(reader: FlexibleReader) -> _Tasks:
    """Read the active, standby and warm-up tasks of an assignment, each sorted."""

    def task_ids(one: FlexibleReader) -> TaskIds:
        subtopology_id, numbers = one.string(), partitions(one.int32s())
        one.tagged_fields()
        return TaskIds(subtopology_id, tuple(sorted(numbers)))

    def sorted_tasks() -> tuple[TaskIds, ...]:
        return tuple(sorted(reader.array(task_ids, _LEAST), key=lambda ids: ids.subtopology_id))

    found = sorted_tasks(), sorted_tasks(), sorted_tasks()
    reader.tagged_fields()
    return found


def _skip_offset(reader: FlexibleReader) -> None:
    reader.string()
    reader.int32()
    reader.int64()
    reader.tagged_fields()


def _share_group(reader: FlexibleReader, _: int) -> GroupRecords:
    group, code, found = read_share_group(reader)
    key = ShareGroupKey(RecordType.SHARE_GROUP_METADATA, group)
    return GroupRecords(group, code, {} if code else {key: found})


_READERS: dict[Key, Callable[[FlexibleReader, int], GroupRecords]] = {
    Key.DESCRIBE_GROUPS: _classic_group,
    Key.CONSUMER_GROUP_DESCRIBE: _consumer_group,
    Key.STREAMS_GROUP_DESCRIBE: _streams_group,
    Key.SHARE_GROUP_DESCRIBE: _share_group,
}
