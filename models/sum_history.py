"""Bounds of an offset sum over time: in little memory, the newest all and older ones sparser."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import NamedTuple

from caughtup.models.task_ends import EndOffsetSum
from caughtup.models.thinning import kept_points

#: The newest points, which all stay; older ones, and how far back those reach in ms.
DENSE_POINTS = 12
SPARSE_POINTS = 8
HORIZON_MS = 3_600_000
#: Points after which a history is thinned.
POINTS_KEPT = DENSE_POINTS + SPARSE_POINTS + 6


class SumPoint(NamedTuple):
    """A sum lay between ``low`` and ``high`` (offsets) at a moment (ms since the epoch)."""

    at_ms: int
    low: int
    high: int

    @property
    def middle(self) -> float:
        """The middle of what the sum can have been, in offsets."""
        return (self.low + self.high) / 2

    @property
    def half_width(self) -> float:
        """How far the sum can have been from the middle, in offsets."""
        return (self.high - self.low) / 2


class SumHistory:
    """What an offset sum was, oldest first: of a copy's position, its lag, or its task's end."""

    __slots__ = ("_at_ms", "_high", "_low")

    def __init__(self) -> None:
        self._at_ms = array("q")
        self._low = array("q")
        self._high = array("q")

    def add(self, at_ms: int, low: int, high: int) -> bool:
        """Take a point; False for one that is older than the newest, which changes nothing.

        A second point of one moment takes the place of the first.
        """
        if self._at_ms and at_ms < self._at_ms[-1]:
            return False
        if self._at_ms and at_ms == self._at_ms[-1]:
            self._low[-1], self._high[-1] = low, high
            return True
        self._at_ms.append(at_ms)
        self._low.append(low)
        self._high.append(high)
        if len(self._at_ms) > POINTS_KEPT:
            kept = kept_points(self._at_ms, DENSE_POINTS, SPARSE_POINTS, HORIZON_MS)
            for name in self.__slots__:
                column = getattr(self, name)
                setattr(self, name, array("q", [column[index] for index in kept]))
        return True

    def clear(self) -> None:
        """Forget everything."""
        del self._at_ms[:], self._low[:], self._high[:]

    @property
    def last(self) -> SumPoint | None:
        """The newest point, None while there is none."""
        return self._point(-1) if self._at_ms else None

    def points(self, since_ms: int | None = None) -> list[SumPoint]:
        """List the points, or those at or after a moment, oldest first."""
        start = 0 if since_ms is None else bisect_left(self._at_ms, since_ms)
        return [self._point(index) for index in range(start, len(self._at_ms))]

    def around(self, at_ms: int) -> EndOffsetSum | None:
        """Bound a sum that only grows at a moment, by the points around it.

        After the newest point the newest is all that is known. None before the oldest one.
        """
        index = bisect_right(self._at_ms, at_ms)
        if not index:
            return None
        if self._at_ms[index - 1] == at_ms or index == len(self._at_ms):
            return EndOffsetSum(self._low[index - 1], self._high[index - 1])
        return EndOffsetSum(self._low[index - 1], self._high[index])

    def at_most_since(self, limit: int) -> int | None:
        """Tell since which point, without interruption, the sum was certainly at most ``limit``.

        In ms since the epoch; None if it isn't now.
        """
        since = None
        for index in range(len(self._at_ms) - 1, -1, -1):
            if self._high[index] > limit:
                break
            since = self._at_ms[index]
        return since

    @property
    def spacing_ms(self) -> int | None:
        """The usual time between two of the newest points: their median, in ms; None without."""
        newest = self._at_ms[-DENSE_POINTS:]
        gaps = sorted(after - before for before, after in pairwise(newest))
        return gaps[len(gaps) // 2] if gaps else None

    def __len__(self) -> int:
        return len(self._at_ms)

    def _point(self, index: int) -> SumPoint:
        return SumPoint(self._at_ms[index], self._low[index], self._high[index])
