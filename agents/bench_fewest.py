"""The fewest copies that any assignor could balance a group with: a bound, by flows over counts."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from math import ceil, floor

from caughtup.models.assignors.scenario import Scenario
from caughtup.models.ids import TaskId

Node = tuple[str, object]


def fewest_copies(scenario: Scenario) -> int:
    """Count the copies that have to be built at least.

    Each task is to have its active and its standbys, on different clients; the actives and
    standbys for each stream thread of any two clients are to differ by one at most. What a client
    had, or lags less of than a client with nothing, needs not be built. This knows nothing of
    tags, with which more may be needed, or of who the active is, which changes at no cost.
    """
    members = scenario.clients
    size = 1 + min(scenario.configs.num_standby_replicas, len(members) - 1)
    kinds = Counter(_holders(scenario, task) for task in scenario.stateful)
    capacities = [client.capacity for client in members]
    tasks = len(scenario.stateful)
    return tasks * size - max(
        _most_kept(kinds, low, high, size)
        for low, high in _windows(capacities, tasks * size, tasks)
    )


def _holders(scenario: Scenario, task: TaskId) -> tuple[int, ...]:
    most = max(client.lags[task] for client in scenario.clients)
    return tuple(
        place
        for place, client in enumerate(scenario.clients)
        if task in client.previous_active
        or task in client.previous_standby
        or client.lags[task] in (-2, 0)
        or 0 <= client.lags[task] < most
    )


def _windows(capacities: list[int], total: int, most: int) -> Iterator[tuple[list[int], list[int]]]:
    """Give the least and the most copies of each client, for each load the least loaded may have."""
    average = Fraction(total, sum(capacities))
    top = most if total == most * len(capacities) else ceil(average)
    levels = {
        Fraction(count, capacity)
        for capacity in set(capacities)
        for count in range(max(0, floor((average - 1) * capacity)), ceil(top * capacity) + 1)
    }
    # Clients that have every task already can't get more, so the others may be beyond any level.
    if any((average + 1) * capacity > most for capacity in capacities):
        levels |= {Fraction(count, c) for c in set(capacities) for count in range(most + 1)}
    for level in sorted(levels):
        low = [min(ceil(level * capacity), most) for capacity in capacities]
        high = [min(floor((level + 1) * capacity), most) for capacity in capacities]
        if sum(low) <= total <= sum(high):
            yield low, high


def _most_kept(
    kinds: Mapping[tuple[int, ...], int], low: list[int], high: list[int], size: int
) -> int:
    """Count the copies that can be kept within these limits: the greatest flow.

    Tasks with the same holders → holders → what each has to have, or may have besides.
    """
    source, sink, besides = ("source", 0), ("sink", 0), ("besides", 0)
    room: dict[Node, dict[Node, int]] = {}

    def add(start: Node, end: Node, capacity: int) -> None:
        room.setdefault(start, {})[end] = capacity
        room.setdefault(end, {}).setdefault(start, 0)

    for holders, tasks in kinds.items():
        add(source, ("tasks", holders), tasks * size)
        for place in holders:
            add(("tasks", holders), ("client", place), tasks)
    for place, (least, greatest) in enumerate(zip(low, high, strict=True)):
        add(("client", place), sink, least)
        add(("client", place), besides, greatest - least)
    total = sum(kinds.values()) * size
    add(besides, sink, total - sum(low))
    kept = 0
    while path := _path(room, source, sink):
        amount = min(room[start][end] for start, end in path)
        for start, end in path:
            room[start][end] -= amount
            room[end][start] += amount
        kept += amount
    return kept


def _path(
    room: Mapping[Node, Mapping[Node, int]], source: Node, sink: Node
) -> list[tuple[Node, Node]]:
    """Find a shortest path along which there is room."""
    before: dict[Node, Node] = {source: source}
    queue = deque([source])
    while queue:
        node = queue.popleft()
        for other, left in room.get(node, {}).items():
            if left and other not in before:
                before[other] = node
                if other == sink:
                    return list(_back(before, sink))
                queue.append(other)
    return []


def _back(before: Mapping[Node, Node], node: Node) -> Iterable[tuple[Node, Node]]:
    while before[node] != node:
        yield before[node], node
        node = before[node]
