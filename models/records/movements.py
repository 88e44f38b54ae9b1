"""caughtup-movements: what becomes of what moves, tasks, partitions and connectors, by event."""

from __future__ import annotations

from typing import Literal

from caughtup.models.connect.watching import movements as connect
from caughtup.models.connect.watching.movements import ConnectMovement
from caughtup.models.decisions.movements import RECOMMENDED, Plan, Step, TaskMovementEvent
from caughtup.models.decisions.recommendation import PlannedMovement
from caughtup.models.ids import ConnectorTaskId, ProcessId, TopicPartition
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
    or_absent,
    or_none,
    renamed,
    renamed_absent,
)
from caughtup.models.records.keys import decode_group, decode_partition

#: What tells connectors and their tasks from tasks of Kafka Streams.
CONNECT_KINDS = ("connector", "connector-task")

ReassignmentStep = Literal["planned", "promoted", "dropped"]

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

    event: Step
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

    @classmethod
    def from_event(cls, event: TaskMovementEvent) -> TaskMovementRecord:
        """Return the record of an event."""
        movement = event.movement
        return cls(
            TASKS.schema,
            movement.kind,
            event.step,
            event.group,
            event.generation,
            event.decision_id,
            event.at_ms,
            movement.task,
            movement.to,
            movement.reason,
            or_absent(movement.source),
            event.plan,
            or_absent(movement.lag),
            or_absent(event.why),
        )

    def to_event(self) -> TaskMovementEvent:
        """Return the event."""
        movement = PlannedMovement(
            self.task,
            or_none(self.from_),
            str(ProcessId.parse(self.to)),  # in lower case
            self.kind,
            self.reason,
            or_none(self.lag),
        )
        return TaskMovementEvent(
            self.event,
            self.plan,
            self.group,
            self.generation,
            self.decision_id,
            self.at_ms,
            movement,
            or_none(self.why),
        )


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

    event: ReassignmentStep
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
    """An event of a connector, or of one of its tasks, that goes to a worker. The key is the group.

    kind: ``connector`` or ``connector-task``.
    event: planned once the worker is foreseen that gets what no worker has, promoted when it is
        assigned, else dropped.
    group: the workers' group.
    generation: the group's generation from which the event follows.
    at_ms: when the group's state changed, by its coordinator's clock.
    connector: the connector's name.
    to: the worker that it goes to, by host and port.
    reason: why it goes there, a sentence.
    task: the task's number; absent for the connector itself.
    from: the worker that had it in the generation before; absent where none had.
    why: why it was dropped.
    """

    kind: Literal["connector", "connector-task"]
    event: connect.Step
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

    @classmethod
    def from_event(cls, event: ConnectMovement) -> ConnectMovementRecord:
        """Return the record of an event."""
        task = event.item.task if isinstance(event.item, ConnectorTaskId) else None
        connector = event.item if isinstance(event.item, str) else event.item.connector
        return cls(
            CONNECT.schema,
            "connector" if task is None else "connector-task",
            event.step,
            event.group,
            event.generation,
            event.at_ms,
            connector,
            event.to,
            event.reason,
            or_absent(task),
            or_absent(event.source),
            or_absent(event.why),
        )


_KIND = RecordFormat(MovementRecord, _SCHEMAS, _MOST_BYTES)
TASKS = RecordFormat(TaskMovementRecord, _SCHEMAS, _MOST_BYTES)
PARTITIONS = RecordFormat(PartitionMovementRecord, _SCHEMAS, _MOST_BYTES)
CONNECT = RecordFormat(ConnectMovementRecord, _SCHEMAS, _MOST_BYTES)


def read_movement(
    key: bytes | None, value: bytes | None
) -> TaskMovementRecord | PartitionMovementRecord | ConnectMovementRecord:
    """Decode an event. Raises RefusedError; there are no tombstones."""
    if value is None:
        raise RefusedError(BAD_KEY, "a record without a value, of which movement nobody can tell")
    kind = _KIND.decode(value).kind
    if kind in CONNECT_KINDS:
        given = CONNECT.decode(value)
        require_agreement(decode_group(key), given.group)
        return given
    if kind == "partition":
        moved = PARTITIONS.decode(value)
        require_agreement(decode_partition(key), moved.topic_partition)
        return moved
    event = TASKS.decode(value)
    require_agreement(decode_group(key), event.group)
    return event
