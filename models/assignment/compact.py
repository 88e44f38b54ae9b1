"""A scenario as records contain it: each task's greatest lag is written once.

In a large group nearly all clients have no state of a given task, so that they all lag by the whole
of it. ``greatest_lags`` has that lag once for each task, and a client's ``lags`` only the ones that
differ. Scenarios are kept and written like this; an assignor decides from ``expanded``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from caughtup.models.assignment import fields
from caughtup.models.assignment.configs import Configs, read_configs
from caughtup.models.assignment.racks import (
    TaskReplicas,
    find_racks,
    read_partitions,
    read_replicas,
)
from caughtup.models.assignment.scenario import (
    Client,
    Scenario,
    read_clients,
    read_tasks,
    with_all_lags,
)
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.records import scenarios as records
from caughtup.models.records.fields import ABSENT, Absent, or_absent
from caughtup.models.records.scenarios import ConfigValue, ScenarioClient, ScenarioRecord

_DEFAULT_LAG = Configs().acceptable_recovery_lag


@dataclass(frozen=True, slots=True)
class CompactTask:
    """A task: whether it has state, its partitions, and the names of its state stores.

    ``stores`` is None if the names are unknown.
    """

    stateful: bool
    sources: tuple[TopicPartition, ...] = ()
    changelogs: tuple[TopicPartition, ...] = ()
    stores: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class CompactScenario:
    """A scenario whose clients have only those lags, in offsets, that aren't the task's greatest.

    ``config`` has Kafka's names, and only the configs that are set. ``tasks`` are in TaskId order
    and ``clients`` in ProcessId order. ``client_ids`` are the client ids of each process's
    consumers, if known. ``replicas`` are the racks of each partition's replicas, if tasks are
    assigned by rack.
    """

    name: str | None
    assignor: str
    config: Mapping[str, ConfigValue]
    tasks: Mapping[TaskId, CompactTask]
    clients: Mapping[ProcessId, Client]
    greatest_lags: Mapping[TaskId, int] = field(default_factory=dict)
    client_ids: Mapping[ProcessId, tuple[str, ...]] = field(default_factory=dict)
    replicas: Mapping[TopicPartition, tuple[str | None, ...]] = field(default_factory=dict)

    @property
    def acceptable_recovery_lag(self) -> int:
        """The lag up to which a copy counts as caught up, in offsets."""
        lag = self.config.get("acceptable.recovery.lag", _DEFAULT_LAG)
        return lag if isinstance(lag, int) else _DEFAULT_LAG

    def lag_of(self, process: ProcessId, task: TaskId) -> int | None:
        """Return a client's lag of a task in offsets, or Kafka's sentinel.

        None for a stateless task.
        """
        lag = self.clients[process].lags.get(task)
        return self.greatest_lags.get(task) if lag is None else lag

    def expanded(self) -> Scenario:
        """Return the scenario for an assignor, in which every client has all its lags.

        Raises ScenarioError, as ``parse_scenario`` does, if a client or a lag is missing or a
        config is invalid.
        """
        if not self.clients:
            raise ScenarioError("no_clients", "clients: there must be at least one")
        configs = read_configs(self.config)
        stateful = tuple(task for task, one in self.tasks.items() if one.stateful)
        clients = with_all_lags(self.clients.values(), self.greatest_lags, stateful)
        task_replicas = self._task_replicas(configs)
        return Scenario(
            name=self.name,
            assignor=self.assignor,
            configs=configs,
            stateful=stateful,
            stateless=tuple(task for task, one in self.tasks.items() if not one.stateful),
            clients=clients,
            task_replicas=task_replicas,
            racks=find_racks(task_replicas, configs, [one.rack for one in clients]),
        )

    def _task_replicas(self, configs: Configs) -> TaskReplicas | None:
        if configs.rack_aware_assignment_strategy == "none":
            return None
        return TaskReplicas(
            {task: tuple(sorted(one.sources)) for task, one in self.tasks.items()},
            {task: tuple(sorted(one.changelogs)) for task, one in self.tasks.items()},
            self.replicas,
        )


def read_compact(data: object) -> CompactScenario:
    """Read a scenario in the format of ``caughtup assign``, as decoded from JSON.

    Raises ScenarioError as ``parse_scenario`` does, except for missing lags: the rest of such a
    record is still of use.
    """
    root = fields.mapping(data, "the scenario")
    config: Mapping[str, Any] = fields.mapping(root.get("config", {}), "config")
    read_configs(config)  # raises for a value that is no ConfigValue
    tasks = read_tasks(root).values
    greatest, clients = read_clients(root, {str(task): task for task in tasks})
    return CompactScenario(
        name=fields.optional_string(root.get("name"), "name"),
        assignor=fields.required_string(root, "assignor", ""),
        config=config,
        tasks={task: _read_task(task, value) for task, value in tasks.items()},
        clients={client.process_id: client for client in clients},
        greatest_lags=greatest,
        client_ids=_read_client_ids(fields.required_mapping(root, "clients", "")),
        replicas={partition: tuple(racks) for partition, racks in read_replicas(root).items()},
    )


def _read_task(task: TaskId, value: Mapping[str, object]) -> CompactTask:
    return CompactTask(
        value["stateful"] is True,
        read_partitions(task, value, "source"),
        read_partitions(task, value, "changelog"),
        _strings(value, "stores", f"tasks.{task}") if "stores" in value else None,
    )


def _read_client_ids(clients: Mapping[str, object]) -> dict[ProcessId, tuple[str, ...]]:
    found = {}
    for text, given in clients.items():
        place = f"clients.{text:.80}"
        client = fields.mapping(given, place)
        if "client_ids" in client:
            found[ProcessId.parse(text)] = _strings(client, "client_ids", place)
    return found


def _strings(owner: Mapping[str, object], name: str, place: str) -> tuple[str, ...]:
    place = f"{place}.{name}"
    return tuple(fields.string(one, place) for one in fields.array(owner[name], place))


def scenario_record(scenario: CompactScenario) -> ScenarioRecord:
    """Return a scenario in the format of ``caughtup assign``."""
    names = {task: str(task) for task in scenario.tasks}
    brokers, replicas = _replicas(scenario.replicas)
    return ScenarioRecord(
        name=scenario.name,
        assignor=scenario.assignor,
        config=dict(scenario.config),
        tasks={
            names[task]: records.ScenarioTask(
                one.stateful,
                ABSENT if one.stores is None else list(one.stores),
                [(*partition,) for partition in one.sources],
                [(*partition,) for partition in one.changelogs],
            )
            for task, one in scenario.tasks.items()
        },
        greatest_lags={names[task]: lag for task, lag in scenario.greatest_lags.items()},
        clients={
            str(process): _client_record(client, names, scenario.client_ids.get(process))
            for process, client in scenario.clients.items()
        },
        brokers=brokers,
        replicas=replicas,
    )


def _replicas(
    replicas: Mapping[TopicPartition, tuple[str | None, ...]],
) -> tuple[dict[str, str] | Absent, dict[str, list[int]] | Absent]:
    """Return the racks of replicas in the format of ``caughtup assign``, with one broker per rack.

    Assignors decide by racks only, so that the real broker ids don't matter.
    """
    if not replicas:
        return ABSENT, ABSENT
    racks = sorted({rack for own in replicas.values() for rack in own if rack is not None})
    brokers: dict[str | None, int] = {rack: number for number, rack in enumerate(racks)}
    brokers[None] = len(racks)
    return {str(number): rack for number, rack in enumerate(racks)}, {
        str(partition): [brokers[rack] for rack in own]
        for partition, own in sorted(replicas.items())
    }


def _client_record(
    client: Client, names: Mapping[TaskId, str], client_ids: tuple[str, ...] | None
) -> ScenarioClient:
    return ScenarioClient(
        capacity=client.capacity,
        tags=dict(client.tags),
        previous_active=_sorted_names(client.previous_active),
        previous_standby=_sorted_names(client.previous_standby),
        lags={names[task]: lag for task, lag in client.lags.items()},
        rack=or_absent(client.rack),
        client_ids=ABSENT if client_ids is None else list(client_ids),
    )


def _sorted_names(tasks: Iterable[TaskId]) -> list[str]:
    return [str(task) for task in sorted(tasks)]
