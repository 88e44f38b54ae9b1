"""Every number on the wire has bounds, at which it is read and beyond which it is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from caughtup.models.errors import DecodeError
from caughtup.models.ids import NUMBER_MAX, ProcessId, TaskId, TopicPartition
from caughtup.models.offsets import LATEST_OFFSET, LONG_MAX, UNKNOWN_OFFSET_SUM
from caughtup.models.wire.assignment_info import AssignmentInfo, HostInfo, decode_assignment_info
from caughtup.models.wire.batch import decode_batch
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
from caughtup.models.wire.consumer_offsets import (
    OffsetCommit,
    OffsetKey,
    decode_key,
    decode_offset_commit,
)
from caughtup.models.wire.consumer_protocol import (
    ConsumerAssignment,
    ConsumerSubscription,
    decode_assignment,
    decode_subscription,
)
from caughtup.models.wire.group_metadata import GroupMetadata, decode_group_metadata
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
from caughtup.models.wire.subscription_info import SubscriptionInfo, decode_subscription_info
from tests.models.wire.new_group_encoders import new_group_record
from tests.models.wire.streams_encoders import assignment_info, subscription_info
from tests.support import wire

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

COMMIT = OffsetCommit(7, 1, "said", 1_732_000_000_000, -1, None)
METADATA = GroupMetadata("consumer", 3, "range", "c1", 1_732_000_000_000, ())
SUBSCRIPTION = ConsumerSubscription(3, ("orders",), None, (), 3, None)
INFO = SubscriptionInfo(11, 11, ProcessId(1, 2), "", {}, 0, 0, {})
GIVEN = AssignmentInfo(11, 11, (), {}, {}, {}, 0, None)


def commits(version: int) -> dict[str, Field]:
    def of(**changes: int) -> bytes:
        return wire.offset_commit(COMMIT._replace(**changes), version)

    fields: dict[str, Field] = {
        "offset": (decode_offset_commit, lambda n: of(offset=n), *OFFSETS),
        "commit time": (decode_offset_commit, lambda n: of(commit_timestamp_ms=n), *TIMES),
    }
    if version >= 3:
        epochs = (decode_offset_commit, lambda n: of(leader_epoch=n), *FROM_MINUS_ONE)
        fields["leader epoch"] = epochs
    return {f"{name} of a commit {version}": field for name, field in fields.items()}


def infos(version: int) -> dict[str, Field]:
    def told(sums: dict[TaskId, int]) -> bytes:
        return subscription_info(replace(INFO, version=version, offset_sums=sums))

    def given(**changes: Any) -> bytes:
        return assignment_info(replace(GIVEN, version=version, **changes))

    def on_host(number: int) -> bytes:
        return given(active_by_host={HostInfo("a", 1): (TopicPartition("orders", number),)})

    read, take = decode_subscription_info, decode_assignment_info
    zero = TaskId(0, 0)
    fields: dict[str, Field] = {
        "told subtopology": (read, lambda n: told({TaskId(n, 0): -2}), *NUMBERS),
        "told task": (read, lambda n: told({TaskId(0, n): -3}), *NUMBERS),
        "given subtopology": (take, lambda n: given(active=(TaskId(n, 0),)), *NUMBERS),
        "given task": (take, lambda n: given(active=(TaskId(0, n),)), *NUMBERS),
        "given standby": (take, lambda n: given(standby={TaskId(0, n): ()}), *NUMBERS),
        "source of a standby": (
            take,
            lambda n: given(standby={zero: (TopicPartition("orders", n),)}),
            *NUMBERS,
        ),
    }
    if version >= 2:
        fields["partition of a host"] = (take, on_host, *NUMBERS)
    if version >= 7:
        fields["offset sum"] = (read, lambda n: told({zero: n}), *SUMS)
        times = [0, LATEST_MS], [-1, LONG_MIN]
        fields["next rebalance"] = (take, lambda n: given(next_rebalance_ms=n), *times)
    return {f"{name}, version {version}": field for name, field in fields.items()}


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


FIELDS: dict[str, Field] = {
    "partition of a key": (
        decode_key,
        lambda n: wire.offset_key(OffsetKey("shop", "orders", n)),
        *NUMBERS,
    ),
    "generation": (
        decode_group_metadata,
        lambda n: wire.group_metadata(replace(METADATA, generation=n), 3),
        *FROM_MINUS_ONE,
    ),
    "state time": (
        decode_group_metadata,
        lambda n: wire.group_metadata(replace(METADATA, state_timestamp_ms=n), 3),
        *KNOWN_TIMES,
    ),
    "owned partition": (
        decode_subscription,
        lambda n: wire.subscription(replace(SUBSCRIPTION, owned=(TopicPartition("orders", n),))),
        *NUMBERS,
    ),
    "generation of a subscription": (
        decode_subscription,
        lambda n: wire.subscription(replace(SUBSCRIPTION, generation=n)),
        *FROM_MINUS_ONE,
    ),
    "assigned partition": (
        decode_assignment,
        lambda n: wire.assignment(ConsumerAssignment(3, (TopicPartition("orders", n),), None)),
        *NUMBERS,
    ),
    **{name: field for version in range(5) for name, field in commits(version).items()},
    **{name: field for version in range(1, 12) for name, field in infos(version).items()},
    **new_groups(),
}

every_field = pytest.mark.parametrize("name", FIELDS)


@every_field
def test_a_number_at_its_bounds_is_read(name: str) -> None:
    decode, write, good, _ = FIELDS[name]
    for number in good:
        decode(write(number))


@every_field
def test_a_number_beyond_its_bounds_is_refused(name: str) -> None:
    decode, write, _, bad = FIELDS[name]
    for number in bad:
        with pytest.raises(DecodeError) as failure:
            decode(write(number))
        assert failure.value.code in ("out_of_range", "bad_time"), number
        assert str(number) in failure.value.message


def test_a_rebalance_that_is_due_after_the_year_9999_is_due_at_its_end() -> None:
    for due_ms in (LATEST_MS + 1, LONG_MAX - 1):
        raw = assignment_info(replace(GIVEN, next_rebalance_ms=due_ms))
        assert decode_assignment_info(raw).next_rebalance_ms == LATEST_MS
    assert decode_assignment_info(assignment_info(GIVEN)).next_rebalance_ms is None


def test_an_expiry_that_overflowed_is_none() -> None:
    for expire_ms, read in ((LONG_MAX, LONG_MAX), (-1, -1), (LONG_MIN, -1)):
        raw = wire.offset_commit(COMMIT._replace(expire_timestamp_ms=expire_ms), 1)
        assert decode_offset_commit(raw).expire_timestamp_ms == read


def test_what_is_out_of_range_is_counted_and_the_key_keeps_what_could_be_read() -> None:
    key = OffsetKey("shop", "orders", 0)
    records = [
        (wire.offset_key(key), wire.offset_commit(COMMIT, 4)),
        (wire.offset_key(key), wire.offset_commit(COMMIT._replace(offset=LONG_MIN), 4)),
        (wire.offset_key(key._replace(partition=-1)), wire.offset_commit(COMMIT, 4)),
    ]
    batch = decode_batch(records)
    assert batch.commits == {key: COMMIT}
    assert batch.errors == {(1, "out_of_range"): 2}
    assert batch.samples == [
        f"OffsetKey(group='shop', topic='orders', partition=0): out_of_range: offset {LONG_MIN}",
        f"{records[2][0]!r}: out_of_range: partition -1",
    ]
