"""In which order Kafka's public sticky assignor meets clients and tasks."""

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
    """Order the clients as the leader's application state has them.

    ``process_ids`` are in ascending order, and ``arrival`` has the same ones in the order in which
    the leader read their first subscriptions. They go through two HashMaps, the leader's own and
    the state's, and sets of them are filled from there. ``most_excluded`` is how many clients such
    a set will ever be without.

    Source: StreamsPartitionAssignor.assign, DefaultApplicationState.kafkaStreamsStates.
    """
    places = {process_id: place for place, process_id in enumerate(process_ids)}
    by_hash = ClientHashOrder(process_ids, 0)
    everyone = by_hash.of(by_hash.of([places[process_id] for process_id in arrival]))
    return ClientHashOrder(process_ids, most_excluded, everyone)


def unassigned_tasks(tasks: Sequence[TaskId]) -> JavaHashMap[TaskId]:
    """Make the set of tasks that the assignor starts with, as Java's HashSet has them.

    They are grouped by subtopology, go through two HashMaps, and are then copied. ``tasks`` are in
    TaskId order.

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
