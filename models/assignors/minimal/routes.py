"""Level the loads of clients: first by moves that cost nothing, then by the fewest new copies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import lcm
from typing import NamedTuple, Protocol


class Window(NamedTuple):
    """The least and the greatest number of tasks of each client, by its place."""

    low: list[int]
    high: list[int]


class Bounds:
    """The windows in which loads are balanced: one for each level of the loads.

    ``capacities`` are stream threads, ``total`` is the number of copies, and no client can have
    more than ``most`` of them. In ``within_one``, no client has more than one task per thread more
    than another one, which is how Kafka's own tests define a balanced assignment. In ``evenly``, no
    move of a single task makes its two clients more alike, which is where
    HighAvailabilityTaskAssignor stops.
    """

    def __init__(self, capacities: Sequence[int], total: int, most: int) -> None:
        self._total = total
        self._most = most
        self._scale = lcm(*capacities)
        self._steps = [self._scale // capacity for capacity in capacities]

    def within_one(self, counts: Sequence[int]) -> Window:
        """Return the window nearest to these counts in which the loads differ by at most one."""

        def at(level: int) -> Window:
            most, reach = self._most, level + self._scale
            low = [min(-(-level // step), most) for step in self._steps]
            return Window(low, [min(reach // step, most) for step in self._steps])

        return self._nearest(at, counts)

    def deviation(self, counts: Sequence[int]) -> tuple[int, int]:
        """Return how many tasks have to move for loads within one, and the total deviation."""
        window = self.within_one(counts)
        many, few = too_many(counts, window), too_few(counts, window)
        return max(many, few), many + few

    def evenly(self, counts: Sequence[int]) -> Window:
        """Return the window nearest to these counts in which no single move helps."""

        def at(level: int) -> Window:
            high = [min(-(-level // step), self._most) for step in self._steps]
            return Window([max(count - 1, 0) for count in high], high)

        return self._nearest(at, counts)

    def _nearest(self, at: Callable[[int], Window], counts: Sequence[int]) -> Window:
        """Return the window with the fewest tasks to move, and of such the least total deviation.

        The higher the level, the fewer tasks are too many somewhere and the more are too few. So
        the number of moves, the greater of the two, is least around their crossing, and the lesser
        of the two is least at the far ends of that range.
        """
        last = self._most * self._scale
        lowest = _first(0, last, lambda level: sum(at(level).high) >= self._total)
        above = _first(lowest, last, lambda level: sum(at(level).low) > self._total)
        highest = above if sum(at(above).low) <= self._total else above - 1

        def many(level: int) -> int:
            return too_many(counts, at(level))

        def few(level: int) -> int:
            return too_few(counts, at(level))

        crossing = _first(lowest, highest, lambda level: many(level) <= few(level))
        least = few(crossing)
        beyond = _first(crossing, highest, lambda level: few(level) > least)
        levels = [beyond if few(beyond) == least else beyond - 1]
        if crossing > lowest:
            most = many(crossing - 1)
            levels.append(_first(lowest, crossing - 1, lambda level: many(level) <= most))

        def deviation(level: int) -> tuple[int, int]:
            return max(many(level), few(level)), many(level) + few(level)

        return at(min(levels, key=deviation))


def too_many(counts: Sequence[int], window: Window) -> int:
    """Return the number of tasks that clients have beyond the window."""
    return sum(have - high for have, high in zip(counts, window.high, strict=True) if have > high)


def too_few(counts: Sequence[int], window: Window) -> int:
    """Return the number of tasks that clients lack to reach the window."""
    return sum(low - have for have, low in zip(counts, window.low, strict=True) if have < low)


def _first(start: int, end: int, holds: Callable[[int], bool]) -> int:
    """Return the first level from which on a condition holds, or the end."""
    while start < end:
        middle = (start + end) // 2
        if holds(middle):
            end = middle
        else:
            start = middle + 1
    return start


_START = -1


class Units(Protocol):
    """Placed copies, or actives, that move between clients; tasks and clients are places."""

    #: How many units each client has.
    counts: list[int]
    capacities: Sequence[int]

    def tasks(self) -> Iterable[int]:
        """Return the tasks that have units."""

    def arcs(self, task: int) -> list[tuple[int, int]]:
        """Return the moves of a task's units that build nothing new, as (source, destination)."""

    def has_unbuilt(self, source: int) -> bool:
        """Return whether the client has a unit that has to be built anyway, on whichever client."""

    def unbuilt(self, source: int, destination: int) -> int | None:
        """Return a task with such a unit that the destination can have instead.

        None without one.
        """

    def pick(self, source: int, destination: int) -> int | None:
        """Choose the task whose copy the destination builds instead of the source."""

    def nearness(self, task: int, client: int) -> tuple[int, int]:
        """Return a sort key for tasks: the sooner a client can have the task, the smaller."""

    def move(self, task: int, source: int, destination: int) -> None:
        """Move a unit; the caller updates the counts."""


def level(units: Units, bounds: Bounds) -> None:
    """Move units until the loads per thread differ by at most one, building the fewest copies.

    If tags or the number of clients don't allow that, it stops at the best possible.
    """
    # Each window leaves fewer units to move than the one before, so this ends.
    window = bounds.within_one(units.counts)
    while not _fits(units, window) and Routes(units).follow(window, building=True):
        window = bounds.within_one(units.counts)


def even_out(units: Units, bounds: Bounds) -> None:
    """Move units, without building any copy, until no single move makes two clients more alike."""
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
    """Chains of moves: each client on the way gets one unit and gives another one away.

    A chain is a path in a flow network, always one that builds the fewest copies; so the total is
    the fewest, too, unless one move prevents another. A client's units up to the window's low are
    its own; those from there to high share the pool, which is what all clients together have beyond
    low.
    """

    def __init__(self, units: Units) -> None:
        self._units = units
        self._counts = units.counts
        self._pool = len(units.counts)
        self._free: list[dict[int, set[int]]] = [{} for _ in units.counts]
        for task in units.tasks():
            self._add(task)

    def follow(self, window: Window, *, building: bool) -> bool:
        """Move along chains until none is left; return whether any unit moved."""
        moved = False
        while chain := _ChainSearch(self, window, building).chain():
            moved = True
            for source, destination, tasks in chain:
                for task in tasks:
                    self._move(task, source, destination)
        return moved

    def free(self, source: int, destination: int) -> list[int]:
        """Return the tasks that can move without a new copy, the nearest to caught up first."""
        tasks = self._free[source].get(destination)
        if tasks:
            return sorted(tasks, key=lambda task: self._units.nearness(task, destination))
        unbuilt = (
            self._units.unbuilt(source, destination) if self._units.has_unbuilt(source) else None
        )
        return [] if unbuilt is None else [unbuilt]

    def is_free(self, source: int, destination: int) -> bool:
        """Return whether any task can move without building a copy."""
        if self._free[source].get(destination):
            return True
        units = self._units
        return units.has_unbuilt(source) and units.unbuilt(source, destination) is not None

    def leads_somewhere(self, source: int) -> bool:
        """Return whether any task might move from this client without building a copy."""
        return any(self._free[source].values()) or self._units.has_unbuilt(source)

    def picked(self, source: int, destination: int) -> list[int]:
        """Return the task that would be built at the destination, in a list; empty without one."""
        task = self._units.pick(source, destination)
        return [] if task is None else [task]

    def by_load(self, clients: Iterable[int]) -> list[int]:
        """Sort clients from the most loaded to the least; of equal ones the first comes last."""
        counts, capacities = self._counts, self._units.capacities
        return sorted(clients, key=lambda one: (-counts[one] / capacities[one], -one))

    @property
    def counts(self) -> list[int]:
        """The units of each client."""
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


class _ChainSearch:
    """The search for one chain: first without new copies, then with one, and so on."""

    def __init__(self, routes: Routes, window: Window, building: bool) -> None:
        counts, (low, high) = routes.counts, window
        self._routes = routes
        self._counts, self._low, self._high = counts, low, high
        self._building = building
        self._pool = len(counts)
        #: The unused part of the pool; negative if there are more units than fit into it.
        self._room = sum(counts) - sum(map(max, map(min, counts, high), low))
        #: The node from which each node was reached, and whether that builds a copy.
        self._before: dict[int, tuple[int, bool]] = {}
        self._least_loaded = routes.by_load(range(len(counts)))[::-1]
        self._order: list[int] = []

    def chain(self) -> list[_Move]:
        """Return the moves of a chain that builds the fewest copies, the shortest one of these."""
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
        """Visit the nodes that a node reaches; return the end of a chain if there is one."""
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
        """Yield the clients to which the source can give a unit, the least loaded first."""
        if not building and not self._routes.leads_somewhere(source):
            return
        can_have = self._routes.picked if building else self._routes.is_free
        for other in self._least_loaded:
            if other not in self._before and can_have(source, other):
                yield other

    def _moves(self, end: int) -> list[_Move]:
        """Return the moves of the path to the end of a chain, as many units as fit."""
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
