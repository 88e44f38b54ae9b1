"""The racks of clients, and of the replicas of the partitions that their tasks read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caughtup.models.assignment import fields
from caughtup.models.assignment.configs import Configs
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import TaskId, TopicPartition

_INT_MAX = (1 << 31) - 1
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
#: The racks that have a replica, for each partition that a task reads.
PartitionRacks = tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class TaskReplicas:
    """The partitions that each task reads, and the racks of these partitions' replicas.

    ``replicas`` has the rack of each replica of a partition, None for a replica without a rack;
    only partitions that the scenario lists.
    """

    sources: Mapping[TaskId, Sequence[TopicPartition]]
    changelogs: Mapping[TaskId, Sequence[TopicPartition]]
    replicas: Mapping[TopicPartition, Sequence[str | None]]


def read_task_replicas(
    scenario: Mapping[str, object], configs: Configs, tasks: Mapping[TaskId, Mapping[str, object]]
) -> TaskReplicas | None:
    """Read the partitions and replicas of a scenario as decoded from JSON.

    None with the strategy "none". Raises ScenarioError ``bad_field``.
    """
    if configs.rack_aware_assignment_strategy == "none":
        return None
    return TaskReplicas(
        {
            task: tuple(sorted(read_partitions(task, value, "source")))
            for task, value in tasks.items()
        },
        {
            task: tuple(sorted(read_partitions(task, value, "changelog")))
            for task, value in tasks.items()
        },
        read_replicas(scenario),
    )


def read_replicas(scenario: Mapping[str, object]) -> Mapping[TopicPartition, Sequence[str | None]]:
    """Return the racks of each partition's replicas, None for a replica without a rack.

    A broker that isn't listed has no rack, as one that is down has none in Kafka's metadata. Raises
    ScenarioError ``bad_field``.
    """
    brokers = _brokers(scenario)
    replicas: dict[TopicPartition, list[str | None]] = {}
    for text, ids in fields.mapping(scenario.get("replicas", {}), "replicas").items():
        topic, _, digits = text.rpartition("-")
        number = _number(digits)
        if not topic or number is None:
            raise ScenarioError(
                "bad_field", f"replicas: {text!r:.80} is not a partition such as orders-3"
            )
        place = f"replicas.{text}"
        replicas[TopicPartition(topic, number)] = [
            brokers.get(fields.integer(one, place, 0, _INT_MAX)) for one in fields.array(ids, place)
        ]
    return replicas


def read_partitions(
    task: TaskId, value: Mapping[str, object], kind: str
) -> tuple[TopicPartition, ...]:
    """Return a task's partitions, in the order in which they are listed.

    ``kind`` is ``source`` or ``changelog``. Raises ScenarioError ``bad_field``.
    """
    place = f"tasks.{task}.{kind}_partitions"
    given = value.get(f"{kind}_partitions", [])
    partitions: dict[TopicPartition, None] = {}
    for pair in fields.array(given, place):
        two = fields.array(pair, place)
        if len(two) != 2 or not isinstance(two[0], str):
            raise ScenarioError("bad_field", f"{place}: {pair!r:.80} is not a topic and a number")
        number = fields.integer(two[1], place, 0, _INT_MAX)
        partitions[TopicPartition(two[0], number)] = None
    return tuple(partitions)


def _brokers(scenario: Mapping[str, object]) -> Mapping[int, str | None]:
    brokers: dict[int, str | None] = {}
    for text, rack in fields.mapping(scenario.get("brokers", {}), "brokers").items():
        number = _number(text)
        if number is None:
            raise ScenarioError("bad_field", f"brokers: {text!r:.80} is not a broker id")
        brokers[number] = fields.optional_string(rack, f"brokers.{text}")
    return brokers


def _number(text: str) -> int | None:
    """Return a number without leading zeros; None for any other text."""
    return int(text) if _NUMBER.fullmatch(text) else None


@dataclass(frozen=True, slots=True)
class Racks:
    """The racks of a group in which every client and every replica has one.

    ``clients`` has the rack of each client, in ProcessId order, and ``partitions`` the racks of
    each partition's replicas.
    """

    clients: tuple[str, ...]
    partitions: Mapping[TopicPartition, frozenset[str]]
    sources: Mapping[TaskId, Sequence[TopicPartition]]
    changelogs: Mapping[TaskId, Sequence[TopicPartition]]

    def of_sources(self, task: TaskId) -> PartitionRacks:
        """Return the racks of a task's source partitions.

        Raises ScenarioError ``missing_field`` where Kafka fails: without partitions, or replicas of
        one.
        """
        return self._look_up(task, self.sources[task], "source")

    def of_changelogs(self, task: TaskId) -> PartitionRacks:
        """Return the racks of a task's changelog partitions.

        Raises ScenarioError ``missing_field`` where Kafka fails: without partitions, or replicas of
        one.
        """
        return self._look_up(task, self.changelogs[task], "changelog")

    def _look_up(
        self, task: TaskId, partitions: Sequence[TopicPartition], kind: str
    ) -> PartitionRacks:
        if not partitions:
            raise ScenarioError(
                "missing_field", f"tasks.{task}.{kind}_partitions: there must be at least one"
            )
        for partition in partitions:
            if partition not in self.partitions:
                raise ScenarioError("missing_field", f"replicas.{partition}: is missing")
        return tuple(self.partitions[partition] for partition in partitions)


def find_racks(
    task_replicas: TaskReplicas | None, configs: Configs, clients: Sequence[str | None]
) -> Racks | None:
    """Return the racks of clients and replicas; None if Kafka does not assign by rack.

    It does not with the strategy "none", nor if a client or a replica has no rack, or a partition
    no replicas. ``clients`` are the clients' racks. Changelogs are checked only if
    ``num.standby.replicas`` isn't 0. Source: KIP-925, RackAwareTaskAssignor.canEnableRackAwareAssignor.
    """
    by_client = tuple(rack for rack in clients if rack is not None)
    if task_replicas is None or len(by_client) < len(clients):
        return None
    sources, changelogs, replicas = (
        task_replicas.sources,
        task_replicas.changelogs,
        task_replicas.replicas,
    )
    counted = {partition for own in sources.values() for partition in own}
    if configs.num_standby_replicas:
        # Kafka asks for all partitions of these topics, even those that no task has.
        topics = {partition.topic for own in changelogs.values() for partition in own}
        if topics - {partition.topic for partition in replicas}:
            return None
        counted |= {partition for partition in replicas if partition.topic in topics}
    if any(not (own := replicas.get(partition)) or None in own for partition in counted):
        return None
    racks = {p: frozenset(rack for rack in own if rack is not None) for p, own in replicas.items()}
    return Racks(by_client, racks, sources, changelogs)
