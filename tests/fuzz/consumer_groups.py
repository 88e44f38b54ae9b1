"""Consumer groups on the new protocol (KIP-848): every record that their coordinator writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from caughtup.models.polls.batch import Record
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
from caughtup.models.wire.partition_metadata import ConsumerGroupPartitionMetadata
from caughtup.models.wire.record_keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupRegularExpressionKey,
    RecordType,
)
from tests.fuzz.streams_groups import topic_metadata
from tests.fuzz.values import Values
from tests.support.groups.new_group_encoders import new_group_key, new_group_record


class ConsumerGroups:
    """Makes their records; ``subscription`` makes what a member still on the old protocol says."""

    def __init__(self, values: Values, subscription: Callable[[], bytes]) -> None:
        self._values = values
        self._subscription = subscription

    def record(self) -> Record:
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
                ConsumerGroupPartitionMetadata(topic_metadata(values)),
            ),
            lambda: (
                of_member(types.CONSUMER_GROUP_MEMBER_METADATA, group, member),
                self._member(),
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

    def _member(self) -> ConsumerGroupMemberMetadata:
        values = self._values
        classic = ClassicMemberMetadata(values.int32(), {"range": self._subscription()})
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
