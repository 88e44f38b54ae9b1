"""The numbers of tasks that each client may have so that the stream threads' loads are balanced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import lcm
from typing import NamedTuple


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
