"""In which racks the clients are, and in which the replicas of what their tasks read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caughtup.models.assignors import fields
from caughtup.models.assignors.configs import Configs
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import TaskId, TopicPartition

_INT_MAX = (1 << 31) - 1
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")

#: The racks that have a replica, for each partition that a task reads.
PartitionRacks = tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Racks:
    """The racks of a group in which nothing lacks one, so that tasks can be assigned by rack.

    ``clients`` has each client's, in ProcessId order, and ``partitions`` those of its replicas.
    """

    clients: tuple[str, ...]
    partitions: Mapping[TopicPartition, frozenset[str]]
    sources: Mapping[TaskId, Sequence[TopicPartition]]
    changelogs: Mapping[TaskId, Sequence[TopicPartition]]

    def of_sources(self, task: TaskId) -> PartitionRacks:
        """Look up what a task reads. Raises ScenarioError ``missing_field`` where Kafka fails."""
        return self._look_up(task, self.sources[task], "source")

    def of_changelogs(self, task: TaskId) -> PartitionRacks:
        """Look up what a standby reads. Raises ScenarioError ``missing_field`` where Kafka fails."""
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


def read_racks(
    scenario: Mapping[str, Any],
    configs: Configs,
    clients: Sequence[str | None],
    tasks: Mapping[TaskId, Any],
) -> Racks | None:
    """Read racks from a scenario as decoded from JSON; None when Kafka leaves them alone.

    That is with the strategy "none", or when a client has no rack, or a replica of a partition
    that counts, or a partition has no replicas. ``clients`` are the clients' racks. Changelogs
    count when there are to be standbys. A broker that isn't listed has no rack, just as one that
    is down has none in Kafka's metadata.

    Raises ScenarioError ``bad_field``.
    Source: KIP-925, RackAwareTaskAssignor.canEnableRackAwareAssignor.
    """
    if configs.rack_aware_assignment_strategy == "none":
        return None
    sources = {task: _partitions(task, value, "source") for task, value in tasks.items()}
    changelogs = {task: _partitions(task, value, "changelog") for task, value in tasks.items()}
    replicas = _replicas(scenario, _brokers(scenario))
    by_client = tuple(rack for rack in clients if rack is not None)
    if len(by_client) < len(clients):
        return None
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


def _partitions(task: TaskId, value: Mapping[str, Any], kind: str) -> tuple[TopicPartition, ...]:
    """Read a task's partitions, each a topic and a number."""
    place = f"tasks.{task}.{kind}_partitions"
    partitions = set()
    for pair in fields.array(value.get(f"{kind}_partitions", []), place):
        if len(fields.array(pair, place)) != 2 or not isinstance(pair[0], str):
            raise ScenarioError("bad_field", f"{place}: {pair!r:.80} is not a topic and a number")
        number = fields.integer(pair[1], place, 0, _INT_MAX)
        partitions.add(TopicPartition(pair[0], number))
    return tuple(sorted(partitions))


def _brokers(scenario: Mapping[str, Any]) -> Mapping[int, str | None]:
    brokers: dict[int, str | None] = {}
    for text, rack in fields.mapping(scenario.get("brokers", {}), "brokers").items():
        number = _number(text)
        if number is None:
            raise ScenarioError("bad_field", f"brokers: {text!r:.80} is not a broker id")
        brokers[number] = fields.optional_string(rack, f"brokers.{text}")
    return brokers


def _replicas(
    scenario: Mapping[str, Any], brokers: Mapping[int, str | None]
) -> Mapping[TopicPartition, list[str | None]]:
    """Give the racks of each partition's replicas, None for a replica without a rack."""
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


def _number(text: str) -> int | None:
    """Read a number in its one spelling; None for anything else."""
    return int(text) if _NUMBER.fullmatch(text) else None
