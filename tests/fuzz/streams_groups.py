"""Kafka Streams on the new protocol (KIP-1071): every record that its coordinator writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caughtup.models.polls.batch import Record
from caughtup.models.wire.partition_metadata import StreamsGroupPartitionMetadata, TopicMetadata
from caughtup.models.wire.record_keys import RecordType, StreamsGroupKey, StreamsGroupMemberKey
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
from tests.fuzz.values import Values
from tests.support.groups.new_group_encoders import new_group_key, new_group_record


class StreamsGroups:
    """Makes their records."""

    def __init__(self, values: Values) -> None:
        self._values = values

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

    def record(self) -> Record:
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
                StreamsGroupPartitionMetadata(topic_metadata(values)),
            ),
            lambda: (
                of_member(types.STREAMS_GROUP_MEMBER_METADATA, group, member),
                self._member(),
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

    def _member(self) -> StreamsGroupMemberMetadata:
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


def topic_metadata(values: Values) -> tuple[TopicMetadata, ...]:
    """Make topics as a coordinator knew them."""
    return tuple(
        TopicMetadata(values.topic_id(), values.topic(), values.int32(), {values.number(): ()})
        for _ in values.several()
    )
