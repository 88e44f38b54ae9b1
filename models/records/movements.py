"""caughtup-movements: what becomes of movements, of tasks and of partitions, event by event."""

from __future__ import annotations

from typing import Literal

from caughtup.models.ids import TopicPartition
from caughtup.models.records.decoding import BAD_KEY, RecordFormat, RefusedError, require_agreement
from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    Brokers,
    Generation,
    Group,
    Name,
    Offsets,
    Partition,
    ProcessUuid,
    Record,
    Task,
    TimeMs,
    Topic,
    renamed,
    renamed_absent,
)
from caughtup.models.records.keys import decode_group, decode_partition

_SCHEMAS = (1,)
_MOST_BYTES = 64 << 10


class MovementRecord(Record):
    """What tells events of partitions from those of tasks.

    kind: ``partition``, or what the movement of a task does.
    """

    kind: Name


class TaskMovementRecord(MovementRecord):
    """An event of a task's movement: see ``models/decisions/movements.py``. The key is the group.

    kind: what the movement does: ``active``, ``cold``, ``swap``, ``warmup``, ``waiting``,
        ``standby`` or ``stateless``.
    event: what became of it.
    group: the application's group.
    generation: the group's generation from which the event follows.
    decision_id: of the decision that planned it.
    at_ms: when the service found it, by its clock.
    task: the task that moves, such as ``0_3``.
    to: the process that it moves to.
    reason: why it has to move, a sentence.
    from: the process that had it; absent where none had.
    plan: whose plan it is of: the group's own leader's, or the recommended one.
    lag: of the copy on ``to``, when it was planned; absent where it isn't known.
    why: why it was dropped.
    """

    event: Literal["planned", "warming", "promoted", "dropped"]
    group: Group
    generation: Generation
    decision_id: Name
    at_ms: TimeMs
    task: Task
    to: ProcessUuid
    reason: str
    from_: ProcessUuid | Absent = renamed_absent("from")
    plan: Literal["leader", "recommended"] = "recommended"
    lag: Offsets | Absent = ABSENT
    why: str | Absent = ABSENT


class PartitionMovementRecord(Record):
    """An event of a reassignment: see ``models/reassignments/events.py``. The key: ``orders-3``.

    event: planned when it is first seen, promoted when it is completed, else dropped.
    kind: what tells it from an event of a task.
    topic: the partition's topic.
    partition: its number.
    at_ms: when that was observed, by the service's clock.
    to: the brokers of the replicas that it is to have.
    from: the brokers of the replicas that it had.
    why: how it ended, where it was dropped.
    """

    event: Literal["planned", "promoted", "dropped"]
    kind: Literal["partition"]
    topic: Topic
    partition: Partition
    at_ms: TimeMs
    to: Brokers
    from_: Brokers = renamed("from")
    why: str | Absent = ABSENT

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition that it is about."""
        return TopicPartition(self.topic, self.partition)


_KIND = RecordFormat(MovementRecord, _SCHEMAS, _MOST_BYTES)
TASKS = RecordFormat(TaskMovementRecord, _SCHEMAS, _MOST_BYTES)
PARTITIONS = RecordFormat(PartitionMovementRecord, _SCHEMAS, _MOST_BYTES)


def read_movement(
    key: bytes | None, value: bytes | None
) -> TaskMovementRecord | PartitionMovementRecord:
    """Decode an event. Raises RefusedError; there are no tombstones."""
    if value is None:
        raise RefusedError(BAD_KEY, "a record without a value, of which movement nobody can tell")
    if _KIND.decode(value).kind == "partition":
        moved = PARTITIONS.decode(value)
        require_agreement(decode_partition(key), moved.topic_partition)
        return moved
    event = TASKS.decode(value)
    require_agreement(decode_group(key), event.group)
    return event
