"""Records of ``__consumer_offsets``, of every type, by groups that may write whatever they want."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.wire.assignment_info import AssignmentInfo, HostInfo
from caughtup.models.wire.batch import Record
from caughtup.models.wire.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    ConsumerGroupRegularExpression,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata,
    TopicPartitions,
)
from caughtup.models.wire.consumer_offsets import OffsetCommit, OffsetKey
from caughtup.models.wire.consumer_protocol import ConsumerAssignment, ConsumerSubscription
from caughtup.models.wire.group_metadata import GroupMember, GroupMetadata
from caughtup.models.wire.partition_metadata import (
    ConsumerGroupPartitionMetadata,
    StreamsGroupPartitionMetadata,
    TopicMetadata,
)
from caughtup.models.wire.record_keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupRegularExpressionKey,
    RecordType,
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
)
from caughtup.models.wire.streams_group_topology import (
    CopartitionGroup,
    StreamsGroupTopology,
    Subtopology,
    TopicInfo,
)
from caughtup.models.wire.subscription_info import SubscriptionInfo
from tests.fuzz.damage import damaged
from tests.fuzz.values import Values
from tests.models.wire.new_group_encoders import new_group_key, new_group_record
from tests.models.wire.streams_encoders import assignment_info, subscription_info
from tests.support import wire

_KINDS = ("commit", "classic", "consumer", "streams", "unknown")
_WEIGHTS = (45, 25, 14, 14, 2)


class OffsetRecords:
    """Makes records; ``damage`` is how many of a hundred are damaged once they are whole."""

    def __init__(self, values: Values, damage: int = 15) -> None:
        self._values = values
        self._damage = damage / 100
        self._last: deque[Record] = deque(maxlen=100)

    def record(self) -> Record:
        """Make a record, or damage one of the last again."""
        values = self._values
        if len(self._last) == self._last.maxlen and values.chance(0.35):
            key, value = values.random.choice(self._last)
            if key is not None and value is not None:
                return key, damaged(values.random, value)
        record = self._record()
        self._last.append(record)
        return record

    def _record(self) -> Record:
        """Make one: of a commit, a group of any kind, or nothing that anybody knows."""
        values = self._values
        (kind,) = values.random.choices(_KINDS, _WEIGHTS)
        makes: dict[str, Callable[[], Record]] = {
            "commit": self._commit,
            "classic": self._classic,
            "consumer": self._consumer,
            "streams": self._streams,
            "unknown": self._unknown,
        }
        key, value = makes[kind]()
        if values.chance(0.1):
            value = None
        elif value is not None and values.chance(self._damage):
            value = damaged(values.random, value)
        if key is not None and values.chance(self._damage / 5):
            key = damaged(values.random, key)
        return key, value

    def _unknown(self) -> Record:
        random = self._values.random
        key = random.randint(-3, 40).to_bytes(2, signed=True) + random.randbytes(
            random.randint(0, 9)
        )
        return (None if self._values.chance(0.2) else key), random.randbytes(random.randint(0, 40))

    def _commit(self) -> Record:
        values, version = self._values, self._values.random.randint(0, 4)
        key = OffsetKey(values.group(), values.topic(), values.number())
        commit = OffsetCommit(
            values.offset(),
            values.epoch(),
            values.text(),
            values.time_ms(),
            values.int64() if version == 1 else -1,
            values.topic_id() if version == 4 and values.chance(0.8) else None,
        )
        return wire.offset_key(key, values.one_of(0, 1)), wire.offset_commit(commit, version)

    def _classic(self) -> Record:
        values = self._values
        streams = values.chance(0.6)
        protocol_type = "consumer" if streams else values.one_of("consumer", "connect", "", "x")
        metadata = GroupMetadata(
            protocol_type=protocol_type,
            generation=values.epoch(),
            protocol="stream" if streams else values.one_of("range", "caughtup", "sessioned", None),
            leader=values.one_of("m0", "m1", None),
            state_timestamp_ms=values.time_ms(),
            members=tuple(
                self._member(number, streams, protocol_type == "connect")
                for number in values.several(4)
            ),
        )
        version = values.random.randint(0, 4)
        return wire.group_key(values.group()), wire.group_metadata(metadata, version)

    def _member(self, number: int, streams: bool, connect: bool) -> GroupMember:
        values = self._values
        subscription, assignment = self._subscription(streams), self._assignment(streams)
        if connect:
            subscription, assignment = self._connect(), self._connect()
        if values.chance(self._damage / 2):
            subscription = damaged(values.random, subscription)
        if values.chance(self._damage / 2):
            assignment = damaged(values.random, assignment)
        return GroupMember(
            member_id=f"m{number}" if values.chance(0.9) else values.text(),
            group_instance_id=values.maybe_text(),
            client_id=f"app-{number}-StreamThread-1" if values.chance(0.8) else values.text(),
            client_host=values.text(),
            rebalance_timeout_ms=values.int32(),
            session_timeout_ms=values.int32(),
            subscription=subscription,
            assignment=assignment if values.chance(0.9) else b"",
        )

    def _connect(self) -> bytes:
        """A Connect worker's: version, url, offset of its config, and what it has."""
        values = self._values
        fields = (
            wire.number("h", values.one_of(0, 1, 2, -1, 32_767)),
            wire.string("http://connect:8083/"),
            wire.number("q", values.offset()),
            wire.byte_string(values.random.randbytes(values.random.randint(0, 30))),
        )
        return b"".join(fields)

    def _partition(self) -> TopicPartition:
        return TopicPartition(self._values.topic(), self._values.number())

    def _partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(sorted({self._partition() for _ in self._values.several()}))

    def _subscription(self, streams: bool) -> bytes:
        values = self._values
        version = values.random.randint(0, 3)
        data = self._told() if streams or values.chance(0.1) else None
        return wire.subscription(
            ConsumerSubscription(
                version=version,
                topics=tuple(values.topic() for _ in values.several()),
                user_data=data,
                owned=self._partitions() if version >= 1 else (),
                generation=values.epoch() if version >= 2 else -1,
                rack=values.maybe_text() if version >= 3 else None,
            )
        )

    def _assignment(self, streams: bool) -> bytes:
        values = self._values
        data = self._given() if streams or values.chance(0.1) else None
        partitions = self._partitions()
        return wire.assignment(ConsumerAssignment(values.random.randint(0, 3), partitions, data))

    def _task(self) -> TaskId:
        return TaskId(self._values.number(), self._values.number())

    def _told(self) -> bytes:
        values = self._values
        version = values.random.randint(1, 11)
        sums = {self._task(): values.one_of(-2, -3, values.offset()) for _ in values.several(4)}
        told = SubscriptionInfo(
            version=version,
            latest_supported_version=values.random.randint(1, 12),
            process_id=ProcessId(values.one_of(0, 1, 2, values.int64()), 7),
            user_end_point=values.one_of("", "host:1", values.text()),
            offset_sums=sums,
            unique_field=values.random.randint(-128, 127),
            error_code=values.int32(),
            client_tags={values.text(): values.text() for _ in values.several(2)},
        )
        return self._perhaps_damaged(subscription_info(told))

    def _given(self) -> bytes:
        values = self._values
        version = values.random.randint(1, 11)
        hosts = {
            HostInfo(values.one_of("a", "b", "字"), values.int32()): self._partitions()
            for _ in values.several(2)
        }
        given = AssignmentInfo(
            version=version,
            commonly_supported_version=values.random.randint(1, 12),
            active=tuple(self._task() for _ in values.several()),
            standby={self._task(): self._partitions() for _ in values.several()},
            active_by_host=hosts if version >= 2 else {},
            standby_by_host=hosts if version >= 6 else {},
            error_code=values.int32(),
            next_rebalance_ms=values.one_of(None, 0, values.time_ms()),
        )
        return self._perhaps_damaged(assignment_info(given))

    def _perhaps_damaged(self, raw: bytes) -> bytes:
        values = self._values
        return damaged(values.random, raw) if values.chance(self._damage / 2) else raw

    def _topic_partitions(self) -> tuple[TopicPartitions, ...]:
        values = self._values
        return tuple(
            TopicPartitions(
                values.topic_id(),
                tuple(values.number() for _ in values.several()),
                tuple(values.int32() for _ in values.several(2)),
            )
            for _ in values.several()
        )

    def _consumer(self) -> Record:
        values, group = self._values, self._values.group()
        member = values.one_of("m1", "m2", "")
        types = RecordType
        whole, of_member = ConsumerGroupKey, ConsumerGroupMemberKey
        make: Callable[[], tuple[Any, Any]] = values.one_of(
            lambda: (
                whole(types.CONSUMER_GROUP_METADATA, group),
                ConsumerGroupMetadata(values.epoch(), values.int64()),
            ),
            lambda: (
                whole(types.CONSUMER_GROUP_PARTITION_METADATA, group),
                ConsumerGroupPartitionMetadata(self._topic_metadata()),
            ),
            lambda: (
                of_member(types.CONSUMER_GROUP_MEMBER_METADATA, group, member),
                self._consumer_member(),
            ),
            lambda: (
                whole(types.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, group),
                ConsumerGroupTargetAssignmentMetadata(values.epoch(), values.time_ms()),
            ),
            lambda: (
                of_member(types.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, group, member),
                ConsumerGroupTargetAssignmentMember(self._topic_partitions()),
            ),
            lambda: (
                of_member(types.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, group, member),
                ConsumerGroupCurrentMemberAssignment(
                    values.epoch(),
                    values.epoch(),
                    values.random.randint(-128, 127),
                    self._topic_partitions(),
                    self._topic_partitions(),
                ),
            ),
            lambda: (
                ConsumerGroupRegularExpressionKey(
                    types.CONSUMER_GROUP_REGULAR_EXPRESSION, group, values.one_of("e.*", "", "(")
                ),
                ConsumerGroupRegularExpression(
                    tuple(values.topic() for _ in values.several()),
                    values.offset(),
                    values.time_ms(),
                ),
            ),
        )
        key, value = make()
        return new_group_key(key), new_group_record(value)

    def _consumer_member(self) -> ConsumerGroupMemberMetadata:
        values = self._values
        classic = ClassicMemberMetadata(values.int32(), {"range": self._subscription(False)})
        return ConsumerGroupMemberMetadata(
            values.maybe_text(),
            values.maybe_text(),
            values.text(),
            values.text(),
            tuple(values.topic() for _ in values.several()),
            values.one_of(None, "e.*", "("),
            values.int32(),
            values.maybe_text(),
            values.one_of(None, classic),
        )

    def _topic_metadata(self) -> tuple[TopicMetadata, ...]:
        values = self._values
        return tuple(
            TopicMetadata(values.topic_id(), values.topic(), values.int32(), {values.number(): ()})
            for _ in values.several()
        )

    def _task_ids(self) -> tuple[TaskIds, ...]:
        values = self._values
        return tuple(
            TaskIds(
                values.one_of("0", "1", "x", "", "9" * 5_000, "٣", str(values.number())),
                tuple(values.number() for _ in values.several()),
                tuple(values.int32() for _ in values.several(2)),
            )
            for _ in values.several()
        )

    def _tasks(self, count: int) -> tuple[tuple[TaskIds, ...], ...]:
        return tuple(self._task_ids() for _ in range(count))

    def _streams(self) -> Record:
        values, group = self._values, self._values.group()
        member = values.one_of("m1", "m2", "")
        types = RecordType
        whole, of_member = StreamsGroupKey, StreamsGroupMemberKey
        make: Callable[[], tuple[Any, Any]] = values.one_of(
            lambda: (
                whole(types.STREAMS_GROUP_METADATA, group),
                StreamsGroupMetadata(
                    values.epoch(),
                    values.int64(),
                    values.epoch(),
                    {"num.standby.replicas": values.text()},
                    values.epoch(),
                    values.epoch(),
                ),
            ),
            lambda: (
                whole(types.STREAMS_GROUP_PARTITION_METADATA, group),
                StreamsGroupPartitionMetadata(self._topic_metadata()),
            ),
            lambda: (
                of_member(types.STREAMS_GROUP_MEMBER_METADATA, group, member),
                self._streams_member(),
            ),
            lambda: (
                whole(types.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, group),
                StreamsGroupTargetAssignmentMetadata(values.epoch(), values.time_ms()),
            ),
            lambda: (
                of_member(types.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER, group, member),
                StreamsGroupTargetAssignmentMember(*self._tasks(3)),
            ),
            lambda: (
                of_member(types.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, group, member),
                StreamsGroupCurrentMemberAssignment(
                    values.epoch(), values.epoch(), 1, *self._tasks(6)
                ),
            ),
            lambda: (whole(types.STREAMS_GROUP_TOPOLOGY, group), self._topology()),
            lambda: (
                whole(types.STREAMS_GROUP_TARGET_ASSIGNMENT_RESOLVED_TOPIC_IDS, group),
                StreamsGroupTargetAssignmentResolvedTopicIds(
                    values.epoch(), {"0": (values.topic_id(),)}
                ),
            ),
        )
        key, value = make()
        return new_group_key(key), new_group_record(value)

    def _streams_member(self) -> StreamsGroupMemberMetadata:
        values = self._values
        return StreamsGroupMemberMetadata(
            values.maybe_text(),
            values.maybe_text(),
            values.text(),
            values.text(),
            values.int32(),
            values.epoch(),
            values.one_of("5f2c6a4e-0000-4000-8000-000000000001", values.text()),
            values.one_of(None, Endpoint(values.text(), 8080)),
            {values.text(): values.text()},
        )

    def _topology(self) -> StreamsGroupTopology:
        values = self._values

        def topics(most: int = 2) -> tuple[str, ...]:
            return tuple(values.topic() for _ in values.several(most))

        def infos() -> tuple[TopicInfo, ...]:
            return tuple(
                TopicInfo(values.topic(), values.one_of(0, 2, values.int32()), 1, {"a": "b"})
                for _ in values.several(2)
            )

        copartition: Any = CopartitionGroup((0,), (), (values.one_of(0, -1, 7),))
        return StreamsGroupTopology(
            values.epoch(),
            tuple(
                Subtopology(
                    values.one_of("0", "1", "x", "", "9" * 5_000, "٣"),
                    topics(),
                    topics(1),
                    infos(),
                    topics(1),
                    infos(),
                    (copartition,),
                )
                for _ in values.several()
            ),
        )
