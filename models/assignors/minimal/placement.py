"""Where copies are placed, whatever their roles, and how they can move between clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import chain

from caughtup.models.assignors.minimal.copies import ExistingCopies
from caughtup.models.assignors.minimal.tags import TagSpread

#: A group of tasks: their additional reads across racks, whether they are actives, the subtopology.
_Group = tuple[int, bool, int]


class InitialPlacement:
    """The clients of each task's copies, the active's first; tasks and clients are places.

    A task's copies are those nearest to caught up, and missing copies go to the least loaded
    clients. With client tags, the copies that share the fewest values come before both. ``counts``
    are the copies of each client, actives included.
    """

    def __init__(
        self, copies: ExistingCopies, capacities: Sequence[int], size: int, spread: TagSpread
    ) -> None:
        """Place ``size`` copies of each task; there must be at least as many clients."""
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
            self._place_missing()
        self._choose_actives()

    def _drop(self, task: int, clients: list[int]) -> None:
        """Drop a task's surplus copies: the farthest, then those of the most loaded clients."""
        copies = self._copies

        def preference(client: int) -> tuple[int, bool, float, bool, int]:
            load = self.counts[client] / self._capacities[client]
            assigned, owner = task in copies.roles[client], copies.owner[task] == client
            return copies.distance(task, client), not assigned, load, not owner, client

        clients.sort(key=preference)
        for client in clients[self._size :]:
            self.counts[client] -= 1
        del clients[self._size :]

    def _place_missing(self) -> None:
        """Assign the missing copies to the least loaded clients."""
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
        """Choose each task's clients again: existing copies may add no tag value where they are."""
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
        """Choose each active: the caught-up owner, or else the nearest to that, or least loaded."""
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


class CopyPlacement:
    """The clients of each task's copies, the active's first; tasks and clients are places.

    ``counts`` are the copies of each client, actives included.
    """

    def __init__(
        self,
        copies: ExistingCopies,
        capacities: Sequence[int],
        subtopologies: Sequence[int],
        replicas: int,
        spread: TagSpread,
        traffic: Sequence[Sequence[int]] | None,
    ) -> None:
        """Place ``replicas`` copies besides each active; there must be at least as many clients.

        ``traffic`` is the number of partitions that each client would read across racks for each
        task; None if racks don't count.
        """
        dealing = InitialPlacement(copies, capacities, replicas + 1, spread)
        self.clients = dealing.clients
        self.counts = dealing.counts
        self.capacities = capacities
        self._copies = copies
        self._subtopologies = subtopologies
        self._spread = spread
        self._traffic = traffic
        self._queues: dict[int, dict[int, dict[_Group, list[int]]]] = {}
        self._unbuilt: list[dict[int, None]] | None = None
        self._kinds: list[Counter[int]] = []
        self._actives: list[int] = []

    def tasks(self) -> Iterable[int]:
        """Return the tasks, all of which have copies."""
        return range(len(self.clients))

    def arcs(self, task: int) -> list[tuple[int, int]]:
        """Return the moves of a task's placed copies to clients that hold an unplaced copy."""
        holders, here = self._copies.holders[task], self.clients[task]
        free = [one for one in holders if one not in here]
        return [(one, other) for other in free for one in here if self._may_move(task, one, other)]

    def has_unbuilt(self, source: int) -> bool:
        """Return whether any copy placed on the source has yet to be built."""
        if self._unbuilt is None:
            self._unbuilt = [{} for _ in self.capacities]
            for task, clients in enumerate(self.clients):
                for client in clients:
                    if client not in self._copies.holders[task]:
                        self._unbuilt[client][task] = None
        return bool(self._unbuilt[source])

    def unbuilt(self, source: int, destination: int) -> int | None:
        """Return a task whose copy the source has yet to build and the destination may have."""
        assert self._unbuilt is not None, "it was asked whether there are any"
        tasks = self._unbuilt[source]
        return next((one for one in tasks if self._may_move(one, source, destination)), None)

    def nearness(self, task: int, client: int) -> tuple[int, int]:
        """Return a sort key: the offsets that the client has left to restore, then the task."""
        return self._copies.distance(task, client), task

    def move(self, task: int, source: int, destination: int) -> None:
        """Move a copy to another client; it keeps its role."""
        clients = self.clients[task]
        place = clients.index(source)
        clients[place] = destination
        self._queues.pop(destination, None)
        if self._actives and not place:
            self._actives[source] -= 1
            self._actives[destination] += 1
        if self._unbuilt is not None:
            self._unbuilt[source].pop(task, None)
            if destination not in self._copies.holders[task]:
                self._unbuilt[destination][task] = None
        if self._kinds:
            self._kinds[source][self._subtopologies[task]] -= 1
            self._kinds[destination][self._subtopologies[task]] += 1

    def pick(self, source: int, destination: int) -> int | None:
        """Choose the source's copy that the destination is to build instead.

        The least additional reads across racks come first; then an active if that evens out the
        actives of the two clients, or else a standby; then the subtopology of which the source has
        the most compared with the destination; then the least to restore.
        """
        of_source = self._queues.setdefault(source, {})
        queues = of_source.get(destination)
        if queues is None:
            queues = of_source[destination] = self._queue(source, destination)
        for group in self._groups_in_turn(queues, source, destination):
            queue = queues[group]
            while queue and source not in self.clients[queue[-1]]:
                queue.pop()
            for task in reversed(queue):
                if source in self.clients[task] and self._may_move(task, source, destination):
                    return task
        return None

    def spread_further(self) -> bool:
        """Spread copies over more tag values where possible; return whether any copy moved."""
        changed = False
        if self._spread.matters and any(len(clients) > 1 for clients in self.clients):
            for task, clients in enumerate(self.clients):
                preference = partial(rank, self._copies, self.counts, self.capacities, task)
                better = self._spread.improve(clients, preference)
                if better is not clients:
                    changed = True
                    self._replace(task, better)
        return changed

    def _replace(self, task: int, clients: list[int]) -> None:
        """Replace a task's copies; its active stays if it can."""
        first = self.clients[task][0]
        for one in self.clients[task]:
            self.counts[one] -= 1
        for one in clients:
            self.counts[one] += 1
        if first not in clients:
            first = self._copies.nearest(task, clients)
        self.clients[task] = [first, *(one for one in clients if one != first)]
        # These caches depend on the clients, and are filled again on their next use.
        self._queues, self._unbuilt, self._kinds, self._actives = {}, None, [], []

    def _groups_in_turn(
        self, groups: Iterable[_Group], source: int, destination: int
    ) -> list[_Group]:
        if not self._kinds:
            self._kinds = [Counter() for _ in self.capacities]
            self._actives = [0] * len(self.capacities)
            for task, clients in enumerate(self.clients):
                self._actives[clients[0]] += 1
                for client in clients:
                    self._kinds[client][self._subtopologies[task]] += 1
        ours, theirs = self._kinds[source], self._kinds[destination]
        more, less = self.capacities[source], self.capacities[destination]
        alike = (self._actives[source] - 1) * less >= (self._actives[destination] + 1) * more

        def turn(group: _Group) -> tuple[int, bool, int, int]:
            traffic, active, kind = group
            return traffic, active != alike, theirs[kind] * more - ours[kind] * less, kind

        return sorted(groups, key=turn)

    def _queue(self, source: int, destination: int) -> dict[_Group, list[int]]:
        """Return the source's copies by group, each sorted so that the least to restore is last."""
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

    def _may_move(self, task: int, source: int, destination: int) -> bool:
        clients = self.clients[task]
        if destination in clients:
            return False
        return not self._spread.matters or self._spread.may_move(clients, source, destination)


def rank(
    copies: ExistingCopies, counts: Sequence[int], capacities: Sequence[int], task: int, client: int
) -> tuple[int, bool, float, int]:
    """Return a client's sort key for a task's copies.

    A new copy counts as one that is caught up.
    """
    held = client in copies.holders[task]
    distance = copies.distance(task, client) if held else 0
    load = (counts[client] + 1) / capacities[client]
    return distance, task not in copies.roles[client], load, client
