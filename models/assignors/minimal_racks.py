"""Read less across racks, where that costs no copy of state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from caughtup.models.assignors.min_traffic_graph import reassign_for_min_traffic
from caughtup.models.assignors.racks import PartitionRacks, Racks
from caughtup.models.ids import TaskId


def traffic_of(racks: Racks, tasks: Iterable[TaskId]) -> list[list[int]]:
    """Count what each task reads across racks, on each client by its place.

    That is its source partitions of which no replica is in the client's rack. Raises
    ScenarioError where what a task reads is missing, as Kafka fails there.
    """
    traffic = []
    for task in tasks:
        partitions = racks.of_sources(task)
        by_rack = {rack: _across(partitions, rack) for rack in set(racks.clients)}
        traffic.append([by_rack[rack] for rack in racks.clients])
    return traffic


def _across(partitions: PartitionRacks, rack: str) -> int:
    return sum(rack not in racks for racks in partitions)


def exchange(
    places: Sequence[int],
    traffic: Sequence[Sequence[int]],
    cheap: Sequence[Collection[int]],
    before: Sequence[int],
) -> list[int]:
    """Exchange tasks between clients so that the least is read across racks; give the new places.

    ``places`` is the client of each task and ``traffic`` what each client would read across racks
    for it. Every client keeps its number of tasks, and no more tasks than now end up on a client
    that isn't among those where they are ``cheap``. Of exchanges that save as much, it makes
    those after which the most tasks are where they were ``before``.
    """
    movable = [task for task, place in enumerate(places) if set(cheap[task]) - {place}]
    if len(movable) < 2:
        return list(places)
    unit = len(places) + 1
    dear = unit * (1 + sum(max(traffic[task]) for task in movable))
    costs = [
        [
            read * unit + (client != before[task]) + (0 if client in cheap[task] else dear)
            for client, read in enumerate(traffic[task])
        ]
        for task in movable
    ]
    owners = [places[task] for task in movable]
    changed = list(places)
    for task, place in zip(movable, reassign_for_min_traffic(owners, costs, ()), strict=True):
        changed[task] = place
    return changed
