"""What an assignor decides from, as it stands in records: the format of ``caughtup assign``."""

from __future__ import annotations

from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    Int,
    Lag,
    Long,
    Name,
    Part,
    Partition,
    ProcessUuid,
    Task,
    TaskText,
    Topic,
)

#: A partition as a pair: ``["orders", 3]``.
PartitionPair = tuple[Topic, Partition]
#: A config by Kafka's name for it. Which there are, and in which bounds, ``read_configs`` knows.
ConfigValue = Long | str | list[Name] | None
Configs = dict[Name, ConfigValue]


class ScenarioTask(Part):
    """A task: whether it has state, in which stores, and which partitions it reads and keeps."""

    stateful: bool
    stores: list[Name] | Absent = ABSENT
    source_partitions: list[PartitionPair] | Absent = ABSENT
    changelog_partitions: list[PartitionPair] | Absent = ABSENT


class ScenarioClient(Part):
    """A process: its threads, what it had, and its lags in offsets, -2 running, -3 unknown.

    They leave out the tasks of which it lags by as much as anybody.
    """

    capacity: Int
    previous_active: list[TaskText]
    previous_standby: list[TaskText]
    lags: dict[TaskText, Lag]
    tags: dict[Name, Name] | Absent = ABSENT
    rack: Name | Absent | None = ABSENT
    client_ids: list[Name] | Absent = ABSENT


class ScenarioRecord(Part):
    """A whole scenario; ``name`` is the group and its generation.

    ``greatest_lags``: the lag of each client that doesn't tell its own of a task.
    """

    name: str | None
    assignor: Name
    config: Configs
    tasks: dict[Task, ScenarioTask]
    clients: dict[ProcessUuid, ScenarioClient]
    greatest_lags: dict[TaskText, Lag] | Absent = ABSENT
