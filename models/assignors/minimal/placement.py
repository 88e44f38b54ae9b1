"""Copies that are placed, whatever their roles, and how they can move between clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial

from caughtup.models.assignors.minimal.copies import Copies
from caughtup.models.assignors.minimal.dealing import Dealing, rank
from caughtup.models.assignors.minimal.tags import TagSpread

#: Tasks that move alike: what more is read across racks, whether as actives, the subtopology.
_Group = tuple[int, bool, int]


class Placement:
    """The clients of each task's copies, the active's first, tasks and clients by their places.

    ``counts`` are copies, actives among them.
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
        dealing = Dealing(copies, capacities, replicas + 1, spread)
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
        """List the tasks, all of which have copies."""
        return range(len(self.clients))

    def arcs(self, task: int) -> list[tuple[int, int]]:
        """List the moves of a task's copies to clients that have one which isn't among them."""
        holders, here = self._copies.holders[task], self.clients[task]
        free = [one for one in holders if one not in here]
        return [(one, other) for other in free for one in here if self._may(task, one, other)]

    def has_loose(self, source: int) -> bool:
        """Return whether the source has yet to build any of its copies."""
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
        """Choose the copy of the source's that the destination is to build instead.

        What is read across racks comes first; then an active, if that makes the actives of the
        two more alike, or else a standby; then the subtopology of which the source has the most,
        against the destination; then the least to restore.
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
                if source in self.clients[task] and self._may(task, source, destination):
                    return task
        return None

    def spread_on(self) -> bool:
        """Spread copies over more tag values where that can be had; tell if there was any."""
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
        # What was worked out from the clients is worked out again when it is asked for.
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
