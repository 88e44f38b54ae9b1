"""Fields of the newer groups' records that hold a number, and the bounds of each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from caughtup.models.ids import NUMBER_MAX
from caughtup.models.offsets import LATEST_OFFSET, LONG_MAX, UNKNOWN_OFFSET_SUM
from caughtup.models.wire.bounds import LATEST_MS
from caughtup.models.wire.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMetadata,
    ConsumerGroupRegularExpression,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata,
    TopicPartitions,
    decode_consumer_group_record,
)
from caughtup.models.wire.partition_metadata import (
    ConsumerGroupPartitionMetadata,
    TopicMetadata,
    decode_consumer_group_partition_metadata,
)
from caughtup.models.wire.record_keys import RecordType
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
    decode_streams_group_record,
)
from caughtup.models.wire.streams_group_topology import StreamsGroupTopology, Subtopology, TopicInfo
from tests.support.groups.new_group_encoders import new_group_record

INT_MIN, INT_MAX, LONG_MIN = -(1 << 31), (1 << 31) - 1, -(1 << 63)
ID = bytes(range(16))

#: A field: what decodes it, what writes a record with one number in that place, the numbers that it
#: may have at its bounds, and some that it may not have.
Field = tuple[Callable[[bytes], object], Callable[[int], bytes], list[int], list[int]]

OFFSETS = [0, LONG_MAX], [-1, LONG_MIN]
TIMES = [0, LATEST_MS], [-1, LATEST_MS + 1, LONG_MIN, LONG_MAX]
KNOWN_TIMES = [-1, 0, LATEST_MS], [-2, LATEST_MS + 1, LONG_MIN, LONG_MAX]
NUMBERS = [0, NUMBER_MAX], [-1, NUMBER_MAX + 1, INT_MIN, INT_MAX]
EPOCHS = [-2, INT_MAX], [-3, INT_MIN]
FROM_MINUS_ONE = [-1, INT_MAX], [-2, INT_MIN]
COUNTS = [0, INT_MAX], [-1, INT_MIN]
SUMS = [*OFFSETS[0], LATEST_OFFSET, UNKNOWN_OFFSET_SUM], [-1, -4, LONG_MIN]


def of_type(record_type: RecordType) -> Callable[[bytes], object]:
    newer = record_type >= RecordType.STREAMS_GROUP_METADATA
    decode = decode_streams_group_record if newer else decode_consumer_group_record
    return partial(decode, record_type)


def new_groups() -> dict[str, Field]:
    consumer, streams = ConsumerGroupCurrentMemberAssignment, StreamsGroupCurrentMemberAssignment
    has, has_tasks = (
        of_type(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT),
        of_type(RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT),
    )
    target = of_type(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA)
    streams_target = of_type(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA)
    member = StreamsGroupMemberMetadata(None, None, "c", "h", 1, 1, "p", None, {})
    expression = ConsumerGroupRegularExpression((), 0, 0)
    group = StreamsGroupMetadata(1, 0, -1, {}, -1, -1)
    read = {
        "epoch of a group": (
            of_type(RecordType.CONSUMER_GROUP_METADATA),
            lambda n: ConsumerGroupMetadata(n, 0),
            *EPOCHS,
        ),
        "target epoch": (
            target,
            lambda n: ConsumerGroupTargetAssignmentMetadata(n, 0),
            *EPOCHS,
        ),
        "target time": (
            target,
            lambda n: ConsumerGroupTargetAssignmentMetadata(0, n),
            *KNOWN_TIMES,
        ),
        "target partition": (
            of_type(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER),
            lambda n: ConsumerGroupTargetAssignmentMember((TopicPartitions(ID, (1, n, 2)),)),
            *NUMBERS,
        ),
        "member epoch": (has, lambda n: consumer(n, 0, 0, (), ()), *EPOCHS),
        "previous member epoch": (has, lambda n: consumer(0, n, 0, (), ()), *EPOCHS),
        "partition": (
            has,
            lambda n: consumer(0, 0, 0, (TopicPartitions(ID, (n,)),), ()),
            *NUMBERS,
        ),
        "partition to revoke": (
            has,
            lambda n: consumer(0, 0, 0, (), (TopicPartitions(ID, (n,)),)),
            *NUMBERS,
        ),
        "version of an expression": (
            of_type(RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION),
            lambda n: replace(expression, version=n),
            [-1, LONG_MAX],
            [-2, LONG_MIN],
        ),
        "time of an expression": (
            of_type(RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION),
            lambda n: replace(expression, timestamp_ms=n),
            *KNOWN_TIMES,
        ),
        "partition count": (
            decode_consumer_group_partition_metadata,
            lambda n: ConsumerGroupPartitionMetadata((TopicMetadata(ID, "orders", n, {}),)),
            *COUNTS,
        ),
        "racks of a partition": (
            decode_consumer_group_partition_metadata,
            lambda n: ConsumerGroupPartitionMetadata((TopicMetadata(ID, "orders", 1, {n: ()}),)),
            *NUMBERS,
        ),
        **{
            f"{name} of a streams group": (
                of_type(RecordType.STREAMS_GROUP_METADATA),
                lambda n, name=name: replace(group, **{name: n}),
                *EPOCHS,
            )
            for name in (
                "epoch",
                "validated_topology_epoch",
                "stored_description_topology_epoch",
                "failed_description_topology_epoch",
            )
        },
        "topology epoch of a member": (
            of_type(RecordType.STREAMS_GROUP_MEMBER_METADATA),
            lambda n: replace(member, topology_epoch=n),
            *EPOCHS,
        ),
        "target epoch of a streams group": (
            streams_target,
            lambda n: StreamsGroupTargetAssignmentMetadata(n, 0),
            *EPOCHS,
        ),
        "target time of a streams group": (
            streams_target,
            lambda n: StreamsGroupTargetAssignmentMetadata(0, n),
            *KNOWN_TIMES,
        ),
        "target task": (
            of_type(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER),
            lambda n: StreamsGroupTargetAssignmentMember((TaskIds("0", (n,)),), (), ()),
            *NUMBERS,
        ),
        "member epoch of a streams group": (
            has_tasks,
            lambda n: streams(n, 0, 1, (), (), (), (), (), ()),
            *EPOCHS,
        ),
        "task": (
            has_tasks,
            lambda n: streams(0, 0, 1, (), (TaskIds("0", (n,)),), (), (), (), ()),
            *NUMBERS,
        ),
        "topology epoch": (
            of_type(RecordType.STREAMS_GROUP_TOPOLOGY),
            lambda n: StreamsGroupTopology(n, ()),
            *EPOCHS,
        ),
        "epoch of resolved ids": (
            of_type(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_RESOLVED_TOPIC_IDS),
            lambda n: StreamsGroupTargetAssignmentResolvedTopicIds(n, {}),
            *EPOCHS,
        ),
        "partitions of an internal topic": (
            of_type(RecordType.STREAMS_GROUP_TOPOLOGY),
            lambda n: topology(TopicInfo("t", n, 1, {})),
            *COUNTS,
        ),
        "replicas of an internal topic": (
            of_type(RecordType.STREAMS_GROUP_TOPOLOGY),
            lambda n: topology(TopicInfo("t", 1, n, {})),
            [-1, 32_767],
            [-2, -32_768],
        ),
    }
    return {
        name: (decode, lambda n, value=value: new_group_record(value(n)), good, bad)
        for name, (decode, value, good, bad) in read.items()
    }


def topology(changelog: TopicInfo) -> StreamsGroupTopology:
    return StreamsGroupTopology(1, (Subtopology("0", (), (), (changelog,), (), (), ()),))
