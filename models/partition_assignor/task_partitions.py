"""The tasks of a topology, the partitions that each reads or restores from, and a leader's orders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from caughtup.models.assignment.configs import NEWEST, Release
from caughtup.models.assignment.decision import ClientDecision
from caughtup.models.assignors.java import hash_map
from caughtup.models.assignors.java.hash_map import (
    JavaHashMap,
    subtopology_hash_code_of,
    task_hash_code_of,
)
from caughtup.models.assignors.kafka.sticky import LeaderOrders
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.partition_assignor.rebalance import TopicsInfo


@dataclass(frozen=True)
class TaskPartitions:
    """The tasks of a topology, in TaskId order, and their partitions, sorted.

    ``changelogs`` has the stateful tasks only.
    """

    sources: Mapping[TaskId, tuple[TopicPartition, ...]]
    changelogs: Mapping[TaskId, tuple[TopicPartition, ...]]

    @cached_property
    def stateful(self) -> tuple[TaskId, ...]:
        """The stateful tasks."""
        return tuple(self.changelogs)

    @cached_property
    def stateless(self) -> tuple[TaskId, ...]:
        """The stateless tasks."""
        return tuple(task for task in self.sources if task not in self.changelogs)

    @cached_property
    def readers(self) -> Mapping[TopicPartition, TaskId]:
        """The task that reads each source partition."""
        return {one: task for task, partitions in self.sources.items() for one in partitions}


def group_partitions(
    subtopologies: Mapping[int, TopicsInfo], counts: Mapping[str, int]
) -> TaskPartitions:
    """Return the tasks of subtopologies, each with as many as its widest source has partitions.

    ``counts`` has the number of partitions of each source topic. A task's changelog partitions have
    its number, even if a source that serves as a changelog has too few partitions for that. Raises
    ScenarioError ``missing_field`` for a source without a count. Source:
    PartitionGrouper.partitionGroups, ChangelogTopics.setup.
    """
    sources: dict[TaskId, tuple[TopicPartition, ...]] = {}
    changelogs: dict[TaskId, tuple[TopicPartition, ...]] = {}
    for number, subtopology in sorted(subtopologies.items()):
        read = sorted({*subtopology.sources, *subtopology.source_changelogs})
        for topic in read:
            if topic not in counts:
                raise ScenarioError("missing_field", f"partitions.{topic}: is missing")
        logs = sorted({*subtopology.changelogs, *subtopology.source_changelogs})
        for partition in range(max((counts[topic] for topic in read), default=0)):
            task = TaskId(number, partition)
            sources[task] = tuple(
                TopicPartition(topic, partition) for topic in read if partition < counts[topic]
            )
            if logs:
                changelogs[task] = tuple(TopicPartition(topic, partition) for topic in logs)
    return TaskPartitions(sources, changelogs)


def in_hash_order(tasks: Iterable[TaskId], release: Release = NEWEST) -> list[TaskId]:
    """Return different tasks, added in this order, in the order of a HashSet or HashMap."""
    return hash_map.in_hash_order(task_hash_code_of(release), tasks)


def in_hash_map_orders(decided: ClientDecision) -> tuple[Sequence[TaskId], Sequence[TaskId]]:
    """Return a client's actives and standbys in the order that results from a public assignor.

    Both are in one HashMap there, and then in a HashSet each. Source: KafkaStreamsAssignment.of,
    ClientState.setAssignedTasks.
    """
    together = in_hash_order(decided.placed)
    active = frozenset(decided.active)
    return (
        in_hash_order(task for task in together if task in active),
        in_hash_order(task for task in together if task not in active),
    )


def leader_orders(
    arrival: Sequence[ProcessId], tasks: TaskPartitions, release: Release = NEWEST
) -> LeaderOrders:
    """Return the orders in which a leader's sticky assignor iterates over clients and tasks.

    ``arrival`` are the processes in the order in which the leader met them. Tasks are created one
    subtopology after the other and kept in a HashMap; stateful ones go through a HashSet for each
    subtopology, a HashMap of all of them, and one more HashSet. Source:
    PartitionGrouper.partitionGroups, ChangelogTopics.setup,
    StreamsPartitionAssignor.populateTasksForMaps and assignTasksToClients.
    """
    numbers = sorted({task.subtopology for task in tasks.sources})
    subtopologies = list(JavaHashMap[int](subtopology_hash_code_of(release), keys=numbers))
    made: dict[int, list[TaskId]] = {number: [] for number in subtopologies}
    for task in tasks.sources:
        made[task.subtopology].append(task)
    all_tasks = in_hash_order((task for own in made.values() for task in own), release)
    with_state: dict[int, list[TaskId]] = {number: [] for number in subtopologies}
    for task in all_tasks:
        if task in tasks.changelogs:
            with_state[task.subtopology].append(task)
    restored = in_hash_order(
        (task for own in with_state.values() for task in in_hash_order(own, release)), release
    )
    return LeaderOrders(arrival, all_tasks, in_hash_order(restored, release))
