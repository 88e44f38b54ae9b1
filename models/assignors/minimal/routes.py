"""Level the loads of clients by moving what costs nothing first, and then as little as needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, Protocol

from caughtup.models.assignors.minimal.windows import Bounds, Window, too_few, too_many

_START = -1


class Units(Protocol):
    """Placed copies, to be moved between clients; tasks and clients are named by their places."""

    #: How many units each client has.
    counts: list[int]
    capacities: Sequence[int]

    def tasks(self) -> Iterable[int]:
        """List the tasks that have units."""

    def arcs(self, task: int) -> list[tuple[int, int]]:
        """List the moves of a task's units that build nothing new: from whom, to whom."""

    def has_loose(self, source: int) -> bool:
        """Return whether the client has a unit that has to be built anyway, be it here or there."""

    def loose(self, source: int, destination: int) -> int | None:
        """Find such a unit that the destination can have as well."""

    def pick(self, source: int, destination: int) -> int | None:
        """Choose the task of which the destination builds a copy, in the source's stead."""

    def nearness(self, task: int, client: int) -> tuple[int, int]:
        """Order tasks by how soon a client can have them: the smaller, the sooner."""

    def move(self, task: int, source: int, destination: int) -> None:
        """Move a unit; the counts are not the units' to change."""


def level(units: Units, bounds: Bounds) -> None:
    """Move units until the loads are within one of each other, building as few copies as needed.

    Where tags or the number of clients don't allow it, it ends with what can be had.
    """
    # With each window less is amiss than with the one before, so that this comes to an end.
    window = bounds.within_one(units.counts)
    while not _fits(units, window) and Routes(units).follow(window, building=True):
        window = bounds.within_one(units.counts)


def even_out(units: Units, bounds: Bounds) -> None:
    """Move units until no single one could move for the better, without building any copy."""
    window = bounds.evenly(units.counts)
    if not _fits(units, window):
        Routes(units).follow(window, building=False)


def _fits(units: Units, window: Window) -> bool:
    return not too_many(units.counts, window) and not too_few(units.counts, window)


class _Move(NamedTuple):
    source: int
    destination: int
    tasks: list[int]


class Routes:
    """Chains of moves: a client that gets one unit gives another one away.

    A chain is a path in a flow network, and always one on which the fewest copies are built: so
    are the fewest in the end, save where a move rules out another. A client's units up to the
    window's low are its own; those beyond it, up to high, share what all clients together have
    beyond low, the pool.
    """

    def __init__(self, units: Units) -> None:
        self._units = units
        self._counts = units.counts
        self._pool = len(units.counts)
        self._free: list[dict[int, set[int]]] = [{} for _ in units.counts]
        for task in units.tasks():
            self._add(task)

    def follow(self, window: Window, *, building: bool) -> bool:
        """Move along one chain after the other while any is left; tell whether any was."""
        moved = False
        while chain := _Search(self, window, building).chain():
            moved = True
            for source, destination, tasks in chain:
                for task in tasks:
                    self._move(task, source, destination)
        return moved

    def free(self, source: int, destination: int) -> list[int]:
        """List what can move for nothing, what is nearest to caught up first."""
        tasks = self._free[source].get(destination)
        if tasks:
            return sorted(tasks, key=lambda task: self._units.nearness(task, destination))
        loose = self._units.loose(source, destination) if self._units.has_loose(source) else None
        return [] if loose is None else [loose]

    def is_free(self, source: int, destination: int) -> bool:
        """Return whether anything can move for nothing."""
        if self._free[source].get(destination):
            return True
        units = self._units
        return units.has_loose(source) and units.loose(source, destination) is not None

    def leads_somewhere(self, source: int) -> bool:
        """Return whether anything might move from here for nothing."""
        return any(self._free[source].values()) or self._units.has_loose(source)

    def picked(self, source: int, destination: int) -> list[int]:
        """List what would be built at the destination, if anything: one task."""
        task = self._units.pick(source, destination)
        return [] if task is None else [task]

    def by_load(self, clients: Iterable[int]) -> list[int]:
        """Order clients from the most loaded to the least; of equals the first comes last."""
        counts, capacities = self._counts, self._units.capacities
        return sorted(clients, key=lambda one: (-counts[one] / capacities[one], -one))

    @property
    def counts(self) -> list[int]:
        """Count the units of each client."""
        return self._counts

    def _move(self, task: int, source: int, destination: int) -> None:
        for one, other in self._units.arcs(task):
            self._free[one][other].remove(task)
        self._units.move(task, source, destination)
        self._counts[source] -= 1
        self._counts[destination] += 1
        self._add(task)

    def _add(self, task: int) -> None:
        for source, destination in self._units.arcs(task):
            self._free[source].setdefault(destination, set()).add(task)


class _Search:
    """The search for one chain: what costs nothing first, then what builds one copy, and so on."""

    def __init__(self, routes: Routes, window: Window, building: bool) -> None:
        counts, (low, high) = routes.counts, window
        self._routes = routes
        self._counts, self._low, self._high = counts, low, high
        self._building = building
        self._pool = len(counts)
        #: What of the pool is not in use; less than nothing if there is more than fits into it.
        self._room = sum(counts) - sum(map(max, map(min, counts, high), low))
        #: How each node was reached: from which, and whether by building a copy.
        self._before: dict[int, tuple[int, bool]] = {}
        self._least_loaded = routes.by_load(range(len(counts)))[::-1]
        self._order: list[int] = []

    def chain(self) -> list[_Move]:
        """Find the moves of a chain that builds the fewest copies, the shortest one of these."""
        over = [one for one, count in enumerate(self._counts) if count > self._high[one]]
        for one in self._routes.by_load(over):
            self._reach(one, _START, built=False)
        if self._room < 0:
            self._reach(self._pool, _START, built=False)
        expanded = built_from = 0
        while True:
            while expanded < len(self._order):
                node = self._order[expanded]
                expanded += 1
                if (end := self._expand(node, building=False)) is not None:
                    return self._moves(end)
            if not self._building or built_from == expanded:
                return []
            level = self._order[built_from:expanded]
            built_from = expanded
            for node in level:
                if (end := self._expand(node, building=True)) is not None:
                    return self._moves(end)

    def _reach(self, node: int, origin: int, *, built: bool) -> None:
        self._before[node] = (origin, built)
        self._order.append(node)

    def _expand(self, node: int, *, building: bool) -> int | None:
        """Visit what can be reached from a node; return the end of a chain if there is one."""
        if node == self._pool:
            giving = [one for one, n in enumerate(self._counts) if n > self._low[one]]
            for one in self._routes.by_load(giving):
                if one not in self._before:
                    self._reach(one, node, built=False)
            return None
        for other in self._destinations(node, building):
            self._reach(other, node, built=building)
            if self._counts[other] < self._low[other]:
                return other
            if self._counts[other] < self._high[other] and self._pool not in self._before:
                self._reach(self._pool, other, built=False)
                if self._room > 0:
                    return self._pool
        return None

    def _destinations(self, source: int, building: bool) -> Iterator[int]:
        """Name the clients that can have something of the source's, the least loaded first."""
        if not building and not self._routes.leads_somewhere(source):
            return
        can_have = self._routes.picked if building else self._routes.is_free
        for other in self._least_loaded:
            if other not in self._before and can_have(source, other):
                yield other

    def _moves(self, end: int) -> list[_Move]:
        """Make moves of the way to the end of a chain, as many at once as fit through all of it."""
        counts, low, high, pool = self._counts, self._low, self._high, self._pool
        path = [end]
        while (node := self._before[path[-1]][0]) != _START:
            path.append(node)
        path.reverse()
        start = path[0]
        amounts = [
            -self._room if start == pool else counts[start] - high[start],
            self._room if end == pool else low[end] - counts[end],
        ]
        moves = []
        for node, following in pairwise(path):
            if node == pool:
                amounts.append(counts[following] - low[following])
            elif following == pool:
                amounts.append(high[node] - counts[node])
            else:
                choose = self._routes.picked if self._before[following][1] else self._routes.free
                moves.append(_Move(node, following, choose(node, following)))
        amount = min(*amounts, *(len(move.tasks) for move in moves))
        return [_Move(source, other, tasks[:amount]) for source, other, tasks in moves]
