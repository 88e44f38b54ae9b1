"""Stateless tasks, which stay where they are as far as balance over the threads allows."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace

from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.minimal.copies import NO_CLIENT
from caughtup.models.assignors.minimal.racks import exchange, traffic_of
from caughtup.models.ids import TaskId


def place_stateless(scenario: Scenario, actives: Sequence[int]) -> list[int]:
    """Return the client of each stateless task, as a place.

    ``actives`` are the planned clients of the stateful tasks. Tasks without an owner go to the
    least loaded client; then single tasks move while that makes two clients more alike. Tasks that
    can't stay are exchanged where that reduces traffic across racks.
    """
    tasks, capacities = scenario.stateless, [client.capacity for client in scenario.clients]
    if not tasks:
        return []
    owners = _owners(scenario)
    counts = [0] * len(capacities)
    for client in (*actives, *(owner for owner in owners if owner != NO_CLIENT)):
        counts[client] += 1
    places = _place_unowned(owners, counts, capacities)
    _even_out(places, counts, capacities)
    if scenario.racks is None:
        return places
    reads = traffic_of(scenario.racks, tasks)
    everybody = range(len(capacities))
    free = [
        (owner,) if owner == place else everybody
        for owner, place in zip(owners, places, strict=True)
    ]
    return exchange(places, reads, free, places)


def _owners(scenario: Scenario) -> list[int]:
    owner_of: dict[TaskId, int] = {}
    for place, client in enumerate(scenario.clients):
        for task in client.previous_active:
            owner_of.setdefault(task, place)
    return [owner_of.get(task, NO_CLIENT) for task in scenario.stateless]


def _place_unowned(
    owners: Sequence[int], counts: list[int], capacities: Sequence[int]
) -> list[int]:
    """Assign each task without an owner to the client that will have the least load."""
    queue = [((n + 1) / capacities[one], one) for one, n in enumerate(counts)]
    heapify(queue)
    places = list(owners)
    for task, owner in enumerate(owners):
        if owner == NO_CLIENT:
            client = places[task] = queue[0][1]
            counts[client] += 1
            heapreplace(queue, ((counts[client] + 1) / capacities[client], client))
    return places


def _even_out(places: list[int], counts: list[int], capacities: Sequence[int]) -> None:
    """Move tasks, the last ones first, while that makes two clients more alike."""
    own: list[list[int]] = [[] for _ in counts]
    for task, place in enumerate(places):
        own[place].append(task)

    def lowered(one: int) -> tuple[float, int]:
        return (counts[one] - 1) / capacities[one], -one

    def raised(one: int) -> tuple[float, int]:
        return (counts[one] + 1) / capacities[one], one

    while sources := [one for one in range(len(counts)) if own[one]]:
        source = max(sources, key=lowered)
        destination = min(range(len(counts)), key=raised)
        if source == destination or lowered(source)[0] < raised(destination)[0]:
            return
        task = own[source].pop()
        own[destination].append(task)
        places[task] = destination
        counts[source] -= 1
        counts[destination] += 1
