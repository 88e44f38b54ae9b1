"""The orders in which Kafka's public sticky assignor iterates over clients and tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from caughtup.models.assignors.java.hash_map import (
    JavaHashMap,
    copied_table,
    subtopology_hash_code,
    task_hash_code,
)
from caughtup.models.assignors.java.hash_order import ClientHashOrder
from caughtup.models.ids import ProcessId, TaskId


def order_of_clients(
    process_ids: Sequence[ProcessId], arrival: Sequence[ProcessId], most_excluded: int
) -> ClientHashOrder:
    """Return the order of the clients in the leader's application state.

    ``process_ids`` are in ascending order, and ``arrival`` has the same ones in the order in which
    the leader read their first subscriptions. They pass through two HashMaps, the leader's own and
    the state's, from which sets of them are filled. ``most_excluded`` is the greatest number of
    clients that such a set will ever lack.

    Source: StreamsPartitionAssignor.assign, DefaultApplicationState.kafkaStreamsStates.
    """
    places = {process_id: place for place, process_id in enumerate(process_ids)}
    by_hash = ClientHashOrder(process_ids, 0)
    everyone = by_hash.of(by_hash.of([places[process_id] for process_id in arrival]))
    return ClientHashOrder(process_ids, most_excluded, everyone)


def unassigned_tasks(tasks: Sequence[TaskId]) -> JavaHashMap[TaskId]:
    """Return the initial set of tasks of the assignor, in the order of Java's HashSet.

    The tasks are grouped by subtopology, pass through two HashMaps, and are then copied. ``tasks``
    are in TaskId order.

    Source: PartitionGrouper.partitionGroups, StreamsPartitionAssignor.buildApplicationState.
    """
    by_subtopology: defaultdict[int, list[TaskId]] = defaultdict(list)
    for task in tasks:
        by_subtopology[task.subtopology].append(task)
    subtopologies = JavaHashMap[int](subtopology_hash_code, keys=by_subtopology)
    grouped = (task for subtopology in subtopologies for task in by_subtopology[subtopology])
    found = JavaHashMap[TaskId](task_hash_code, keys=grouped)
    known = JavaHashMap[TaskId](task_hash_code, keys=found)
    return JavaHashMap[TaskId](task_hash_code, copied_table(len(tasks)), known)
