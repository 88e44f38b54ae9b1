"""caughtup-movements: the events of movements of tasks, partitions and connectors."""

from __future__ import annotations

from typing import Literal

from caughtup.models.ids import ConnectorTaskId, TopicPartition
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
    changed,
    or_none,
    renamed,
    renamed_absent,
)
from caughtup.models.records.keys import decode_group, decode_partition

#: The kinds of movements of connectors and their tasks.
CONNECT_KINDS = ("connector", "connector-task")

#: The plan that a movement belongs to: the group's own leader's, or the recommended one.
Plan = Literal["leader", "recommended"]
LEADER: Plan = "leader"
RECOMMENDED: Plan = "recommended"

#: The events of a task's movement, and those of a partition's, a connector's or its task's.
TaskStep = Literal["planned", "warming", "promoted", "dropped"]
Step = Literal["planned", "promoted", "dropped"]

_SCHEMAS = (1,)
_MOST_BYTES = 64 << 10


class MovementRecord(Record):
    """What tells events of partitions from those of tasks.

    kind: ``partition``, ``connector`` or ``connector-task``, or what the movement of a task does.
    """

    kind: Name


class TaskMovementRecord(MovementRecord):
    """An event of a task's movement: see ``models/decisions/movements.py``. The key is the group.

    kind: what the movement does: ``active``, ``cold``, ``swap``, ``warmup``, ``waiting``,
        ``standby`` or ``stateless``.
    event: the step that the movement has reached.
    group: the application's group.
    generation: the group's generation from which the event follows.
    decision_id: of the decision that planned it.
    at_ms: when the service found it, by its clock.
    task: the task that moves, such as ``0_3``.
    to: the process that it moves to.
    reason: why it has to move, a sentence.
    from: the process that had it; absent where none had.
    plan: which plan it belongs to: that of the group's own leader, or the recommended one.
    lag: of the copy on ``to``, when it was planned; absent where it isn't known.
    why: why it was dropped.
    """

    event: TaskStep
    group: Group
    generation: Generation
    decision_id: Name
    at_ms: TimeMs
    task: Task
    to: ProcessUuid
    reason: str
    from_: ProcessUuid | Absent = renamed_absent("from")
    plan: Plan = RECOMMENDED
    lag: Offsets | Absent = ABSENT
    why: str | Absent = ABSENT


class PartitionMovementRecord(Record):
    """An event of a reassignment: see ``models/reassignments/events.py``. The key: ``orders-3``.

    event: planned when it is first seen, promoted when it is completed, else dropped.
    kind: distinguishes it from an event of a task.
    topic: the partition's topic.
    partition: its number.
    at_ms: when that was observed, by the service's clock.
    to: the brokers of the replicas that it is to have.
    from: the brokers of the replicas that it had.
    why: how it ended, where it was dropped.
    """

    event: Step
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


class ConnectMovementRecord(MovementRecord):
    """An event of a connector or one of its tasks that moves to a worker. The key is the group.

    kind: ``connector`` or ``connector-task``.
    event: planned once caughtup foresees which worker gets the unassigned work, promoted when that
        worker is assigned it, else dropped.
    group: the workers' group.
    generation: the group's generation from which the event follows.
    at_ms: when the group's state changed, by its coordinator's clock.
    connector: the connector's name.
    to: the worker that it moves to, by host and port.
    reason: why it moves there, a sentence.
    task: the task's number; absent for the connector itself.
    from: the worker that had it in the generation before; absent where none had.
    why: why it was dropped.
    """

    kind: Literal["connector", "connector-task"]
    event: Step
    group: Group
    generation: Generation
    at_ms: TimeMs
    connector: Name
    to: Name
    reason: str
    task: Partition | Absent = ABSENT
    from_: Name | Absent = renamed_absent("from")
    why: str | Absent = ABSENT

    @property
    def name(self) -> str:
        """The connector's name, or the task's."""
        task = or_none(self.task)
        return self.connector if task is None else str(ConnectorTaskId(self.connector, task))


_KIND = RecordFormat(MovementRecord, _SCHEMAS, _MOST_BYTES)
TASKS = RecordFormat(TaskMovementRecord, _SCHEMAS, _MOST_BYTES)
PARTITIONS = RecordFormat(PartitionMovementRecord, _SCHEMAS, _MOST_BYTES)
CONNECT = RecordFormat(ConnectMovementRecord, _SCHEMAS, _MOST_BYTES)


def read_movement(
    key: bytes | None, value: bytes | None
) -> TaskMovementRecord | PartitionMovementRecord | ConnectMovementRecord:
    """Return the event of a record; raises RefusedError, also for tombstones."""
    if value is None:
        raise RefusedError(BAD_KEY, "a record without a value, which names no movement")
    kind = _KIND.decode(value).kind
    if kind in CONNECT_KINDS:
        moving = CONNECT.decode(value)
        require_agreement(decode_group(key), moving.group)
        return moving
    if kind == "partition":
        moved = PARTITIONS.decode(value)
        require_agreement(decode_partition(key), moved.topic_partition)
        return moved
    event = TASKS.decode(value)
    require_agreement(decode_group(key), event.group)
    return changed(event, to=event.to.lower())  # as the service writes process ids
