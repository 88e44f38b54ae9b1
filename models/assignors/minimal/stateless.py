"""Stateless tasks stay where they are, as far as the threads are balanced so."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace

from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.minimal.copies import NOBODY
from caughtup.models.assignors.minimal.racks import exchange, traffic_of
from caughtup.models.ids import TaskId


def place_stateless(scenario: Scenario, actives: Sequence[int]) -> list[int]:
    """Choose a client for each task without state, by their places.

    ``actives`` are the clients of the tasks with state, where those belong in the end. Tasks that
    nobody ran go to the least loaded client, and then single tasks move while that makes two
    clients more alike. Those that can't stay are exchanged where that saves traffic across racks.
    """
    tasks, capacities = scenario.stateless, [client.capacity for client in scenario.clients]
    if not tasks:
        return []
    owners = _owners(scenario)
    counts = [0] * len(capacities)
    for client in (*actives, *(owner for owner in owners if owner != NOBODY)):
        counts[client] += 1
    places = _deal(owners, counts, capacities)
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
    return [owner_of.get(task, NOBODY) for task in scenario.stateless]


def _deal(owners: Sequence[int], counts: list[int], capacities: Sequence[int]) -> list[int]:
    """Assign each task that nobody ran to the client with the least load afterwards."""
    queue = [((n + 1) / capacities[one], one) for one, n in enumerate(counts)]
    heapify(queue)
    places = list(owners)
    for task, owner in enumerate(owners):
        if owner == NOBODY:
            client = places[task] = queue[0][1]
            counts[client] += 1
            heapreplace(queue, ((counts[client] + 1) / capacities[client], client))
    return places


def _even_out(places: list[int], counts: list[int], capacities: Sequence[int]) -> None:
    """Move tasks, the last ones first, while a source stays as loaded as the other becomes."""
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
