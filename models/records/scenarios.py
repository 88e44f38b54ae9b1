"""An assignor's inputs in records, in the format of ``caughtup assign``."""

from __future__ import annotations

from caughtup.models.records.fields import (
    ABSENT,
    Absent,
    Broker,
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
#: Configs by Kafka's names; ``read_configs`` checks names and bounds.
ConfigValue = Long | str | list[Name] | None
Configs = dict[Name, ConfigValue]


class ScenarioTask(Part):
    """A task.

    stateful: whether it has state that is restored from changelogs.
    stores: the names of its state stores.
    source_partitions: what it reads: ``["orders", 3]``.
    changelog_partitions: where its state is logged.
    """

    stateful: bool
    stores: list[Name] | Absent = ABSENT
    source_partitions: list[PartitionPair] | Absent = ABSENT
    changelog_partitions: list[PartitionPair] | Absent = ABSENT


class ScenarioClient(Part, kw_only=True):
    """A process.

    capacity: its stream threads.
    previous_active: the tasks that it had as active.
    previous_standby: the other tasks of which it has state.
    lags: by task, how far its copy is from the changelogs' end: -2 runs, -3 is unknown. It leaves
        out the tasks of which it lags by ``greatest_lags``.
    tags: its client tags.
    rack: its rack; null: none.
    client_ids: the ids of its consumers.
    """

    capacity: Int
    tags: dict[Name, Name] | Absent = ABSENT
    previous_active: list[TaskText]
    previous_standby: list[TaskText]
    lags: dict[TaskText, Lag]
    rack: Name | Absent | None = ABSENT
    client_ids: list[Name] | Absent = ABSENT


class ScenarioRecord(Part, kw_only=True):
    """A whole scenario.

    name: the group and its generation.
    assignor: what decides.
    config: the assignor's configs, by Kafka's names.
    tasks: by id.
    clients: by process.
    greatest_lags: by task, the lag of each client whose ``lags`` leave it out.
    brokers: by broker, its rack, where tasks are assigned by rack; a broker for each rack.
    replicas: by partition, the brokers of its replicas.
    """

    name: str | None
    assignor: Name
    config: Configs
    tasks: dict[Task, ScenarioTask]
    greatest_lags: dict[TaskText, Lag] | Absent = ABSENT
    clients: dict[ProcessUuid, ScenarioClient]
    brokers: dict[Name, Name] | Absent = ABSENT
    replicas: dict[Name, list[Broker]] | Absent = ABSENT
