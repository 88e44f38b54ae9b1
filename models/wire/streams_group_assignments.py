"""The target and current assignments of a streams group's members (KIP-1071.

Types 20 to 22, 24).
"""

from __future__ import annotations

from dataclasses import dataclass

from caughtup.models.wire.bounds import epoch, known_time_ms, partitions
from caughtup.models.wire.reader import FlexibleReader, open_value, tagged_field

_ASSIGNMENT_TIMESTAMP_TAG = 0
_ASSIGNMENT_EPOCHS_TAG = 0
_TASK_IDS_BYTES = 3  # a name's length, a count and tagged fields
_RESOLVED_TOPIC_IDS_BYTES = 3  # likewise


@dataclass(frozen=True, slots=True)
class StreamsGroupTargetAssignmentMetadata:
    """The epoch of the members' target assignments (type 20).

    ``assignment_timestamp_ms`` is when they were computed, 0 if unknown (before 4.3).
    """

    assignment_epoch: int
    assignment_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class TaskIds:
    """Tasks of a subtopology, by their partitions.

    ``assignment_epochs`` are the epochs of their assignments, empty if unknown; only the active
    tasks of a current assignment have them.
    """

    subtopology_id: str
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StreamsGroupTargetAssignmentMember:
    """A member's target assignment (type 21)."""

    active_tasks: tuple[TaskIds, ...]
    standby_tasks: tuple[TaskIds, ...]
    warmup_tasks: tuple[TaskIds, ...]


@dataclass(frozen=True, slots=True)
class StreamsGroupCurrentMemberAssignment:
    """A member's current assignment, and the tasks that it must revoke (type 22).

    ``state``: 1 stable, 2 has tasks to revoke, 3 waits for tasks of others, 127 unknown.
    """

    member_epoch: int
    previous_member_epoch: int
    state: int
    active_tasks: tuple[TaskIds, ...]
    standby_tasks: tuple[TaskIds, ...]
    warmup_tasks: tuple[TaskIds, ...]
    active_tasks_pending_revocation: tuple[TaskIds, ...]
    standby_tasks_pending_revocation: tuple[TaskIds, ...]
    warmup_tasks_pending_revocation: tuple[TaskIds, ...]


@dataclass(frozen=True, slots=True)
class StreamsGroupTargetAssignmentResolvedTopicIds:
    """The topics of each subtopology at the assignment's computation, by id: 16 bytes (type 24)."""

    assignment_epoch: int
    topic_ids: dict[str, tuple[bytes, ...]]


def decode_target_assignment_metadata(data: bytes) -> StreamsGroupTargetAssignmentMetadata:
    """Read a value of type 20. Raises DecodeError.

    Source: Kafka's ``StreamsGroupTargetAssignmentMetadataValue``.
    """
    reader = open_value(data, "streams group target assignment metadata")
    assignment_epoch, fields = epoch(reader.int32()), reader.tagged_fields()
    timestamp_ms = tagged_field(fields, _ASSIGNMENT_TIMESTAMP_TAG, FlexibleReader.int64)
    return StreamsGroupTargetAssignmentMetadata(assignment_epoch, known_time_ms(timestamp_ms or 0))


def decode_target_assignment_member(data: bytes) -> StreamsGroupTargetAssignmentMember:
    """Read a value of type 21. Raises DecodeError.

    Source: Kafka's ``StreamsGroupTargetAssignmentMemberValue``.
    """
    reader = open_value(data, "streams group target assignment of a member")
    active, standby, warmup = (reader.array(_target_tasks, _TASK_IDS_BYTES) for _ in range(3))
    reader.tagged_fields()
    return StreamsGroupTargetAssignmentMember(active, standby, warmup)


def decode_current_member_assignment(data: bytes) -> StreamsGroupCurrentMemberAssignment:
    """Read a value of type 22. Raises DecodeError.

    Source: Kafka's ``StreamsGroupCurrentMemberAssignmentValue``.
    """
    reader = open_value(data, "streams group current assignment of a member")
    member_epoch, previous_member_epoch = epoch(reader.int32()), epoch(reader.int32())
    state = reader.int8()
    tasks = [reader.array(_current_tasks, _TASK_IDS_BYTES) for _ in range(6)]
    reader.tagged_fields()
    return StreamsGroupCurrentMemberAssignment(member_epoch, previous_member_epoch, state, *tasks)


def _target_tasks(reader: FlexibleReader) -> TaskIds:
    subtopology_id, numbers = reader.string(), partitions(reader.int32s())
    reader.tagged_fields()
    return TaskIds(subtopology_id, numbers)


def _current_tasks(reader: FlexibleReader) -> TaskIds:
    subtopology_id, numbers = reader.string(), partitions(reader.int32s())
    epochs = tagged_field(
        reader.tagged_fields(), _ASSIGNMENT_EPOCHS_TAG, FlexibleReader.nullable_int32s
    )
    return TaskIds(subtopology_id, numbers, epochs or ())


def decode_resolved_topic_ids(data: bytes) -> StreamsGroupTargetAssignmentResolvedTopicIds:
    """Read a value of type 24. Raises DecodeError.

    Source: what Kafka has announced of ``StreamsGroupTargetAssignmentResolvedTopicIdsValue``.
    """
    reader = open_value(data, "streams group resolved topic ids")
    assignment_epoch = epoch(reader.int32())
    topic_ids = dict(reader.array(_resolved_subtopology, _RESOLVED_TOPIC_IDS_BYTES))
    reader.tagged_fields()
    return StreamsGroupTargetAssignmentResolvedTopicIds(assignment_epoch, topic_ids)


def _resolved_subtopology(reader: FlexibleReader) -> tuple[str, tuple[bytes, ...]]:
    subtopology_id, topic_ids = reader.string(), reader.uuids()
    reader.tagged_fields()
    return subtopology_id, topic_ids
