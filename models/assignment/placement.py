"""What each task reads, and in which racks the replicas of that are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from caughtup.models.assignment import fields
from caughtup.models.assignment.configs import Configs
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import TaskId, TopicPartition

_INT_MAX = (1 << 31) - 1
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")


@dataclass(frozen=True, slots=True)
class Placement:
    """The partitions of the tasks, and their replicas as far as a scenario gives them.

    ``replicas`` has the rack of each replica of a partition, None for one without a rack.
    """

    sources: Mapping[TaskId, Sequence[TopicPartition]]
    changelogs: Mapping[TaskId, Sequence[TopicPartition]]
    replicas: Mapping[TopicPartition, Sequence[str | None]]


def read_placement(
    scenario: Mapping[str, Any], configs: Configs, tasks: Mapping[TaskId, Any]
) -> Placement | None:
    """Read the placement from a scenario as decoded from JSON; None with the strategy "none".

    Raises ScenarioError ``bad_field``.
    """
    if configs.rack_aware_assignment_strategy == "none":
        return None
    return Placement(
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


def read_replicas(scenario: Mapping[str, Any]) -> Mapping[TopicPartition, Sequence[str | None]]:
    """Read the racks of each partition's replicas, None for a replica without a rack.

    A broker that isn't listed has no rack, just as one that is down has none in Kafka's metadata.
    Raises ScenarioError ``bad_field``.
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
    task: TaskId, value: Mapping[str, Any], kind: str
) -> tuple[TopicPartition, ...]:
    """Read a task's partitions, each a topic and a number, in their order.

    ``kind``: ``source`` or ``changelog``. Raises ScenarioError ``bad_field``.
    """
    place = f"tasks.{task}.{kind}_partitions"
    partitions: dict[TopicPartition, None] = {}
    for pair in fields.array(value.get(f"{kind}_partitions", []), place):
        if len(fields.array(pair, place)) != 2 or not isinstance(pair[0], str):
            raise ScenarioError("bad_field", f"{place}: {pair!r:.80} is not a topic and a number")
        number = fields.integer(pair[1], place, 0, _INT_MAX)
        partitions[TopicPartition(pair[0], number)] = None
    return tuple(partitions)


def _brokers(scenario: Mapping[str, Any]) -> Mapping[int, str | None]:
    brokers: dict[int, str | None] = {}
    for text, rack in fields.mapping(scenario.get("brokers", {}), "brokers").items():
        number = _number(text)
        if number is None:
            raise ScenarioError("bad_field", f"brokers: {text!r:.80} is not a broker id")
        brokers[number] = fields.optional_string(rack, f"brokers.{text}")
    return brokers


def _number(text: str) -> int | None:
    """Read a number in its one spelling; None for anything else."""
    return int(text) if _NUMBER.fullmatch(text) else None
