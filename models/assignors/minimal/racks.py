"""Read less across racks, without building any further copy of state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from caughtup.models.assignment.racks import PartitionRacks, Racks
from caughtup.models.ids import TaskId


def traffic_of(racks: Racks, tasks: Iterable[TaskId]) -> list[list[int]]:
    """Return how many partitions each task reads across racks on each client, by its place.

    These are its source partitions without a replica in the client's rack. Raises ScenarioError if
    a task's partitions are missing, as Kafka fails there.
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
    """Return the tasks' new places after exchanges so that the least is read across racks.

    ``places`` is the client of each task and ``traffic`` the number of partitions that each client
    would read across racks for it. Every client keeps its number of tasks, and a task goes only to
    clients that are ``cheap`` for it. Of exchanges that save as much, those are made that leave the
    most tasks where they were ``before``.
    """
    changed = list(places)
    unit = len(places) + 1
    own: dict[int, list[int]] = {}
    for task, place in enumerate(places):
        if any(client != place for client in cheap[task]):
            own.setdefault(place, []).append(task)

    def cost(task: int, client: int) -> int:
        return traffic[task][client] * unit + (client != before[task])

    def best_moves(source: int) -> dict[int, tuple[int, int]]:
        """Return the task that each other client can have at the least cost, and that cost."""
        best: dict[int, tuple[int, int]] = {}
        for task in own[source]:
            stays = cost(task, source)
            for client in cheap[task]:
                if client != source and client in own:
                    move = (cost(task, client) - stays, task)
                    best[client] = min(best.get(client, move), move)
        return best

    moves = {source: best_moves(source) for source in sorted(own)}
    while cycle := _negative_cycle(moves):
        for source, destination in cycle:
            task = moves[source][destination][1]
            changed[task] = destination
            own[source].remove(task)
            own[destination].append(task)
        for source, _ in cycle:
            moves[source] = best_moves(source)
    return changed


def _negative_cycle(moves: Mapping[int, Mapping[int, tuple[int, int]]]) -> list[tuple[int, int]]:
    """Return moves in a circle with a negative total cost, by Bellman and Ford, if any."""
    distances = dict.fromkeys(moves, 0)
    before: dict[int, int] = {}
    last = None
    for _ in moves:
        last = None
        for source, others in moves.items():
            for other, (cost, _task) in others.items():
                if distances[source] + cost < distances[other]:
                    distances[other] = distances[source] + cost
                    before[other] = source
                    last = other
        if last is None:
            return []
    if last is None:
        return []
    for _ in moves:
        last = before[last]
    cycle = [(before[last], last)]
    while cycle[-1][0] != last:
        cycle.append((before[cycle[-1][0]], cycle[-1][0]))
    return cycle
