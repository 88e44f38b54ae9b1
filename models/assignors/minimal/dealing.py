"""Where copies begin to be placed: where they are, and what is missing on idle threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import chain

from caughtup.models.assignors.minimal.copies import Copies
from caughtup.models.assignors.minimal.tags import TagSpread


class Dealing:
    """The clients of each task's copies, the active's first, tasks and clients by their places.

    A task's copies are those that are nearest to caught up, and those that are missing are dealt
    to the least loaded clients. Where client tags count, the copies that share the fewest values
    come before both. ``counts`` are copies, actives among them.
    """

    def __init__(
        self, copies: Copies, capacities: Sequence[int], size: int, spread: TagSpread
    ) -> None:
        """Assign ``size`` copies of each task, for which there must be as many clients."""
        self._copies = copies
        self._capacities = capacities
        self._size = size
        self.clients = [*map(list[int], copies.holders)]
        tally = Counter(chain.from_iterable(self.clients))
        self.counts = [tally[client] for client in range(len(capacities))]
        for task, clients in enumerate(self.clients):
            if len(clients) > size:
                self._drop(task, clients)
        if spread.matters and size > 1:
            self._spread_over_tags(spread)
        else:
            self._deal()
        self._choose_actives()

    def _drop(self, task: int, clients: list[int]) -> None:
        """Drop the copies of a task that are too many: those of the most loaded, if all are near."""
        copies = self._copies

        def preference(client: int) -> tuple[int, bool, float, bool, int]:
            load = self.counts[client] / self._capacities[client]
            assigned, owner = task in copies.roles[client], copies.owner[task] == client
            return copies.distance(task, client), not assigned, load, not owner, client

        clients.sort(key=preference)
        for client in clients[self._size :]:
            self.counts[client] -= 1
        del clients[self._size :]

    def _deal(self) -> None:
        """Assign the copies that are missing to the least loaded clients."""
        counts, capacities = self.counts, self._capacities
        queue = [((n + 1) / capacities[one], one) for one, n in enumerate(counts)]
        heapify(queue)
        for clients in self.clients:
            if len(clients) == self._size:
                continue
            aside: list[tuple[float, int]] = []
            while len(clients) < self._size:
                entry = heappop(queue)
                client = entry[1]
                if client not in clients:
                    clients.append(client)
                    counts[client] += 1
                    entry = ((counts[client] + 1) / capacities[client], client)
                aside.append(entry)
            for entry in aside:
                heappush(queue, entry)

    def _spread_over_tags(self, spread: TagSpread) -> None:
        """Choose anew for each task, since what exists may be where no value is added."""
        copies, counts = self._copies, self.counts
        for task, holders in enumerate(copies.holders):
            for one in self.clients[task]:
                counts[one] -= 1
            assigned = [one for one in holders if task in copies.roles[one]]
            preference = partial(rank, copies, counts, self._capacities, task)
            self.clients[task] = spread.choose(assigned, holders, self._size, preference)
            for one in self.clients[task]:
                counts[one] += 1

    def _choose_actives(self) -> None:
        """Choose who ran a task and is caught up; else who is nearest to it, or least loaded."""
        copies, capacities = self._copies, self._capacities
        actives, loads = [0] * len(capacities), [0.0] * len(capacities)

        def preference(task: int, client: int) -> tuple[int, bool, float]:
            owner = copies.owner[task]
            return copies.distance(task, client), client != owner, loads[client]

        for task, clients in enumerate(self.clients):
            owner = copies.owner[task]
            if copies.runs(task, owner) and owner in clients:
                first = owner
            elif copies.holders[task]:
                first = min(clients, key=partial(preference, task))
            else:
                first = min(clients, key=loads.__getitem__)
            if clients[0] != first:
                clients[clients.index(first)] = clients[0]
                clients[0] = first
            actives[first] += 1
            loads[first] = actives[first] / capacities[first]


def rank(
    copies: Copies, counts: Sequence[int], capacities: Sequence[int], task: int, client: int
) -> tuple[int, bool, float, int]:
    """Order clients for a task's copies; a new copy is as good as one that is caught up."""
    held = client in copies.holders[task]
    distance = copies.distance(task, client) if held else 0
    load = (counts[client] + 1) / capacities[client]
    return distance, task not in copies.roles[client], load, client
