"""The inputs of an assignor: the tasks, the clients with their lags, and the configs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from caughtup.models.assignment import fields
from caughtup.models.assignment.configs import NEWEST, Configs, Release, read_configs
from caughtup.models.assignment.racks import Racks, TaskReplicas, find_racks, read_task_replicas
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ProcessId, TaskId

Id = TypeVar("Id", TaskId, ProcessId)

_INT_MAX = (1 << 31) - 1
_LONG_MAX = (1 << 63) - 1
#: Kafka's sentinels are -2, a running active, and -3, unknown; -1 has no meaning.
_LEAST_LAG = -3
_NO_LAG = -1


@dataclass(frozen=True, slots=True)
class Client:
    """A process: its stream threads, its previous tasks, and its lags of all stateful tasks.

    Lags are in offsets, -2 for a running active and -3 for unknown. ``tags`` are its
    ``client.tag.`` configs, and ``rack`` is its consumers' ``client.rack``.
    """

    process_id: ProcessId
    capacity: int
    previous_active: frozenset[TaskId]
    previous_standby: frozenset[TaskId]
    lags: Mapping[TaskId, int]
    tags: Mapping[str, str] = field(default_factory=dict)
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """A valid scenario. Tasks are in TaskId order, clients in ProcessId order.

    ``task_replicas`` are the partitions and their replicas' racks; None with the strategy "none".
    ``racks`` is None if Kafka's internal assignors don't assign by rack. ``release`` is the family
    of releases whose assignors decide.
    """

    name: str | None
    assignor: str
    configs: Configs
    stateful: tuple[TaskId, ...]
    stateless: tuple[TaskId, ...]
    clients: tuple[Client, ...]
    task_replicas: TaskReplicas | None
    racks: Racks | None
    release: Release = NEWEST


def parse_scenario(data: object) -> Scenario:
    """Read a scenario in the format of ``caughtup assign``, as decoded from JSON.

    A client whose ``lags`` lack a task has the lag that ``greatest_lags`` has for it. Raises
    ScenarioError, whose message names the field: ``bad_field``, ``missing_field``,
    ``unknown_config``, ``unknown_task``, ``duplicate`` (an id twice in one place, maybe in two
    spellings) or ``no_clients``. Contradictions between clients, such as two that ran the same
    task, are accepted, as Kafka's assignors accept them.
    """
    root = fields.mapping(data, "the scenario")
    name = root.get("name")
    if name is not None and not isinstance(name, str):
        raise ScenarioError("bad_field", "name: is not a string")
    configs = read_configs(fields.mapping(root.get("config", {}), "config"))
    tasks = read_tasks(root)
    greatest, own = read_clients(root, {str(task): task for task in tasks.values})
    clients = with_all_lags(own, greatest, tasks.stateful)
    task_replicas = read_task_replicas(root, configs, tasks.values)
    return Scenario(
        name=name,
        assignor=fields.required_string(root, "assignor", ""),
        configs=configs,
        stateful=tasks.stateful,
        stateless=tasks.stateless,
        clients=clients,
        task_replicas=task_replicas,
        racks=find_racks(task_replicas, configs, [one.rack for one in clients]),
    )


class ReadTasks(NamedTuple):
    """A scenario's tasks: their JSON objects, and which have state and which do not, sorted."""

    values: Mapping[TaskId, Mapping[str, object]]
    stateful: tuple[TaskId, ...]
    stateless: tuple[TaskId, ...]


def read_tasks(root: Mapping[str, object]) -> ReadTasks:
    """Return the tasks of a scenario as decoded from JSON. Raises ScenarioError."""
    values: dict[TaskId, Mapping[str, object]] = {}
    stateful: list[TaskId] = []
    stateless: list[TaskId] = []
    given = read_ids(fields.required_mapping(root, "tasks", ""), "tasks", TaskId.parse)
    for task, value in sorted(given.items()):
        place = f"tasks.{task}"
        values[task] = fields.mapping(value, place)
        kind = fields.required(values[task], "stateful", place)
        if not isinstance(kind, bool):
            raise ScenarioError("bad_field", f"{place}.stateful: is neither true nor false")
        (stateful if kind else stateless).append(task)
    return ReadTasks(values, tuple(stateful), tuple(stateless))


def read_clients(
    root: Mapping[str, object], known: Mapping[str, TaskId]
) -> tuple[Mapping[TaskId, int], tuple[Client, ...]]:
    """Return each task's greatest lag, and the clients with the lags that they list themselves."""
    by_process = read_ids(fields.required_mapping(root, "clients", ""), "clients", ProcessId.parse)
    if not by_process:
        raise ScenarioError("no_clients", "clients: there must be at least one")
    greatest = _lags(
        fields.mapping(root.get("greatest_lags", {}), "greatest_lags"), "greatest_lags", known
    )
    own = (_client(process, value, known) for process, value in sorted(by_process.items()))
    return greatest, tuple(own)


def with_all_lags(
    clients: Iterable[Client], greatest: Mapping[TaskId, int], stateful: Iterable[TaskId]
) -> tuple[Client, ...]:
    """Return the clients with a lag of every stateful task: their own, or else the greatest.

    Raises ScenarioError ``missing_field`` for a lag in neither.
    """
    wanted = [task for task in stateful if task not in greatest]
    found = []
    for client in clients:
        for task in wanted:
            if task not in client.lags:
                place = f"clients.{client.process_id}.lags.{task}"
                raise ScenarioError("missing_field", f"{place}: is missing")
        found.append(replace(client, lags={**greatest, **client.lags}))
    return tuple(found)


def _client(process_id: ProcessId, value: object, known: Mapping[str, TaskId]) -> Client:
    place = f"clients.{process_id}"
    client = fields.mapping(value, place)
    capacity = fields.required(client, "capacity", place)
    own = _lags(fields.required_mapping(client, "lags", place), f"{place}.lags", known)
    return Client(
        process_id=process_id,
        capacity=fields.integer(capacity, f"{place}.capacity", 1, _INT_MAX),
        previous_active=_previous(client, "previous_active", place, known),
        previous_standby=_previous(client, "previous_standby", place, known),
        lags=own,
        tags={
            key: fields.string(value, f"{place}.tags.{key:.80}")
            for key, value in fields.mapping(client.get("tags", {}), f"{place}.tags").items()
        },
        rack=fields.optional_string(client.get("rack"), f"{place}.rack"),
    )


def _previous(
    client: Mapping[str, object], field: str, place: str, known: Mapping[str, TaskId]
) -> frozenset[TaskId]:
    """Return the tasks that a client had, including tasks that the topology no longer has."""
    given = fields.required(client, field, place)
    place = f"{place}.{field}"
    tasks: set[TaskId] = set()
    for text in fields.array(given, place):
        task = known.get(text) if isinstance(text, str) else None
        if task is None:
            task = fields.parse(TaskId.parse, text, place)
        if task in tasks:
            raise ScenarioError("duplicate", f"{place}: {task} is given twice")
        tasks.add(task)
    return frozenset(tasks)


def _lags(
    given: Mapping[str, object], place: str, known: Mapping[str, TaskId]
) -> Mapping[TaskId, int]:
    lags: dict[TaskId, int] = {}
    for text, lag in given.items():
        task = known.get(text)
        if task is None:
            task = fields.parse(TaskId.parse, text, place)
            if str(task) not in known:
                raise ScenarioError("unknown_task", f"{place}: {task} is not among the tasks")
        if task in lags:
            raise ScenarioError("duplicate", f"{place}: {task} is given twice")
        if type(lag) is not int or not _LEAST_LAG <= lag <= _LONG_MAX or lag == _NO_LAG:
            raise ScenarioError("bad_field", f"{place}.{text}: is not an offset count, -2 or -3")
        lags[task] = lag
    return lags


def read_ids(
    given: Mapping[str, object], place: str, parse: Callable[[str], Id]
) -> dict[Id, object]:
    """Return a mapping with its keys parsed.

    Raises ScenarioError ``duplicate`` for one id in two spellings.
    """
    values: dict[Id, object] = {}
    for text, value in given.items():
        one = fields.parse(parse, text, place)
        if one in values:
            raise ScenarioError("duplicate", f"{place}: {one} is given twice")
        values[one] = value
    return values
