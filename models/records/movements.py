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
    Offset,
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
    """What tells events of partitions from those of tasks."""

    kind: Name


class TaskMovementRecord(MovementRecord):
    """An event of a task's movement: see ``models/decisions/movements.py``. The key is the group."""

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
    lag: Offset | Absent = ABSENT
    why: str | Absent = ABSENT


class PartitionMovementRecord(Record):
    """An event of a partition's movement: see ``models/reassignments/movements.py``."""

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
