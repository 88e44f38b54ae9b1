"""The orders in which a leader's hash tables return tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from caughtup.models.assignment.decision import ClientDecision
from caughtup.models.assignment.releases import NEWEST, Release
from caughtup.models.assignors.java.hash_map import (
    JavaHashMap,
    subtopology_hash_code_of,
    task_hash_code_of,
)
from caughtup.models.assignors.kafka.sticky import LeaderOrders
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.partition_assignor.task_partitions import TaskPartitions


def in_hash_order(tasks: Iterable[TaskId], release: Release = NEWEST) -> list[TaskId]:
    """Return different tasks, added in this order, in the order of a HashSet or HashMap."""
    return list(JavaHashMap[TaskId](task_hash_code_of(release), keys=tasks))


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
