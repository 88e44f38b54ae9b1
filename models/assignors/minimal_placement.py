"""Where copies belong, whatever their roles: kept where they are as far as the loads allow it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import chain

from caughtup.models.assignors.minimal_copies import Copies
from caughtup.models.assignors.minimal_tags import TagSpread

#: Tasks that move alike: what more is read across racks, whether as actives, the subtopology.
_Group = tuple[int, bool, int]


class Placement:
    """The clients of each task's copies, the active's first, by their places.

    To begin with, a task's copies are those that are nearest to caught up, and those that are
    missing are dealt to the least loaded clients. Where client tags count, the copies that share
    the fewest values come before both. ``counts`` are copies, actives among them.
    """

    def __init__(
        self,
        copies: Copies,
        capacities: Sequence[int],
        subtopologies: Sequence[int],
        replicas: int,
        spread: TagSpread,
        traffic: Sequence[Sequence[int]] | None,
    ) -> None:
        """Place ``replicas`` copies besides each active, of which there must be as many clients.

        ``traffic`` is what each client would read across racks for each task, if that counts.
        """
        self.capacities = capacities
        self._copies = copies
        self._subtopologies = subtopologies
        self._spread = spread
        self._traffic = traffic
        self._size = replicas + 1
        self.clients = [*map(list[int], copies.holders)]
        tally = Counter(chain.from_iterable(self.clients))
        self.counts = [tally[client] for client in range(len(capacities))]
        for task, clients in enumerate(self.clients):
            if len(clients) > self._size:
                self._drop(task, clients)
        if spread.matters and replicas:
            self._spread_over_tags()
        else:
            self._deal()
        self.actives = [0] * len(capacities)
        self._choose_actives()
        self._queues: dict[tuple[int, int], dict[_Group, list[int]]] = {}
        self._unbuilt: list[dict[int, None]] | None = None
        self._kinds: list[Counter[int]] = []

    def tasks(self) -> Iterable[int]:
        """List the tasks, all of which have copies."""
        return range(len(self.clients))

    def arcs(self, task: int) -> list[tuple[int, int]]:
        """List the moves of a task's copies to clients that have one which isn't among them."""
        holders, here = self._copies.holders[task], self.clients[task]
        free = [one for one in holders if one not in here]
        return [(one, other) for other in free for one in here if self._may(task, one, other)]

    def has_loose(self, source: int) -> bool:
        """Tell whether the source has yet to build any of its copies."""
        if self._unbuilt is None:
            self._unbuilt = [{} for _ in self.capacities]
            for task, clients in enumerate(self.clients):
                for client in clients:
                    if client not in self._copies.holders[task]:
                        self._unbuilt[client][task] = None
        return bool(self._unbuilt[source])

    def loose(self, source: int, destination: int) -> int | None:
        """Find a task of which the source has yet to build its copy, too."""
        assert self._unbuilt is not None, "it was asked whether there are any"
        tasks = self._unbuilt[source]
        return next((one for one in tasks if self._may(one, source, destination)), None)

    def nearness(self, task: int, client: int) -> tuple[int, int]:
        """Order tasks by what the client has left to restore."""
        return self._copies.distance(task, client), task

    def move(self, task: int, source: int, destination: int) -> None:
        """Move a copy, in whichever role it is."""
        clients = self.clients[task]
        place = clients.index(source)
        clients[place] = destination
        if not place:
            self.actives[source] -= 1
            self.actives[destination] += 1
        if self._unbuilt is not None:
            self._unbuilt[source].pop(task, None)
            if destination not in self._copies.holders[task]:
                self._unbuilt[destination][task] = None
        if self._kinds:
            self._kinds[source][self._subtopologies[task]] -= 1
            self._kinds[destination][self._subtopologies[task]] += 1

    def pick(self, source: int, destination: int) -> int | None:
        """Choose the copy of the source's that the destination is to build instead.

        What is read across racks comes first; then an active, if that makes the actives of the
        two more alike, or else a standby; then the subtopology of which the source has the most,
        against the destination; then the least to restore.
        """
        queues = self._queues.get((source, destination))
        if queues is None:
            queues = self._queues[source, destination] = self._queue(source, destination)
        for group in self._groups_in_turn(queues, source, destination):
            queue = queues[group]
            while queue and source not in self.clients[queue[-1]]:
                queue.pop()
            for task in reversed(queue):
                if source in self.clients[task] and self._may(task, source, destination):
                    return task
        return None

    def _groups_in_turn(
        self, groups: Iterable[_Group], source: int, destination: int
    ) -> list[_Group]:
        if not self._kinds:
            self._kinds = [Counter() for _ in self.capacities]
            for task, clients in enumerate(self.clients):
                for client in clients:
                    self._kinds[client][self._subtopologies[task]] += 1
        ours, theirs = self._kinds[source], self._kinds[destination]
        more, less = self.capacities[source], self.capacities[destination]
        alike = (self.actives[source] - 1) * less >= (self.actives[destination] + 1) * more
        return sorted(
            groups,
            key=lambda one: (
                one[0],
                one[1] != alike,
                theirs[one[2]] * more - ours[one[2]] * less,
                one[2],
            ),
        )

    def _queue(self, source: int, destination: int) -> dict[_Group, list[int]]:
        """Queue the source's copies group by group, the one with the least to restore last."""
        queues: dict[_Group, list[int]] = {}
        for task, clients in enumerate(self.clients):
            if source in clients:
                active = clients[0] == source
                more = 0
                if active and self._traffic is not None:
                    more = self._traffic[task][destination] - self._traffic[task][source]
                queues.setdefault((more, active, self._subtopologies[task]), []).append(task)
        for queue in queues.values():
            queue.sort(key=lambda task: self.nearness(task, destination), reverse=True)
        return queues

    def _may(self, task: int, source: int, destination: int) -> bool:
        clients = self.clients[task]
        if destination in clients:
            return False
        return not self._spread.matters or self._spread.may_move(clients, source, destination)

    def _preference(self, task: int, client: int) -> tuple[int, bool, float, bool, int]:
        """Prefer copies that are nearest to caught up, assigned, on the least loaded clients."""
        copies = self._copies
        load = self.counts[client] / self.capacities[client]
        assigned = task in copies.roles[client]
        owner = copies.owner[task] == client
        return copies.distance(task, client), not assigned, load, not owner, client

    def _drop(self, task: int, clients: list[int]) -> None:
        """Drop the copies of a task that are too many."""
        clients.sort(key=partial(self._preference, task))
        for client in clients[self._size :]:
            self.counts[client] -= 1
        del clients[self._size :]

    def _choose_actives(self) -> None:
        """Put first who ran a task and is caught up; else who is nearest to it, or least loaded."""
        copies, actives, capacities = self._copies, self.actives, self.capacities
        loads = [0.0] * len(capacities)

        def rank(task: int, client: int) -> tuple[int, bool, float]:
            owner = copies.owner[task]
            return copies.distance(task, client), client != owner, loads[client]

        for task, clients in enumerate(self.clients):
            owner = copies.owner[task]
            if copies.runs(task, owner) and owner in clients:
                first = owner
            elif copies.holders[task]:
                first = min(clients, key=partial(rank, task))
            else:
                first = min(clients, key=loads.__getitem__)
            if clients[0] != first:
                clients[clients.index(first)] = clients[0]
                clients[0] = first
            actives[first] += 1
            loads[first] = actives[first] / capacities[first]

    def spread_on(self) -> bool:
        """Spread copies over more tag values where that can be had; tell if there was any."""
        changed = False
        if self._spread.matters and self._size > 1:
            for task, clients in enumerate(self.clients):
                better = self._spread.improve(clients, partial(self._rank, task))
                if better is not clients:
                    changed = True
                    self._replace(task, better)
        return changed

    def _replace(self, task: int, clients: list[int]) -> None:
        """Give a task other copies; its active stays if it can."""
        for one in self.clients[task]:
            self.counts[one] -= 1
        for one in clients:
            self.counts[one] += 1
        first = self.clients[task][0]
        self.actives[first] -= 1
        if first not in clients:
            first = self._copies.nearest(task, clients)
        self.actives[first] += 1
        self.clients[task] = [first, *(one for one in clients if one != first)]
        self._queues, self._unbuilt, self._kinds = {}, None, []

    def _rank(self, task: int, client: int) -> tuple[int, bool, float, int]:
        """Order clients for a task's copies; a new one is as good as one that is caught up."""
        copies = self._copies
        held = client in copies.holders[task]
        distance = copies.distance(task, client) if held else 0
        load = (self.counts[client] + 1) / self.capacities[client]
        return distance, task not in copies.roles[client], load, client

    def _spread_over_tags(self) -> None:
        """Choose anew for each task, since what exists may be where no value is added."""
        roles = self._copies.roles
        for task, holders in enumerate(self._copies.holders):
            for one in self.clients[task]:
                self.counts[one] -= 1
            assigned = [one for one in holders if task in roles[one]]
            rank = partial(self._rank, task)
            self.clients[task] = self._spread.choose(assigned, holders, self._size, rank)
            for one in self.clients[task]:
                self.counts[one] += 1

    def _deal(self) -> None:
        """Deal the copies that are missing to the least loaded clients."""
        counts, capacities = self.counts, self.capacities
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
