"""Bounds of an offset sum over time, in little memory: older points are sparser."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import pairwise
from math import ceil
from typing import NamedTuple

from caughtup.models.histories.thinning import kept_points
from caughtup.models.offsets import LONG_MAX, task_lag

#: The number of newest points, which all stay, and of older ones; the age of the oldest, in ms.
DENSE_POINTS = 12
SPARSE_POINTS = 8
HORIZON_MS = 3_600_000
#: Points after which a history is thinned.
POINTS_KEPT = DENSE_POINTS + SPARSE_POINTS + 6

_COLUMNS = 3


class EndOffsetSum(NamedTuple):
    """Bounds of a task's end offset sum, in offsets."""

    low: int
    high: int

    def lags(self, offset_sum: int) -> tuple[int, int]:
        """Return bounds of the lag of a copy with that offset sum, in offsets, by ``task_lag``."""
        ends = {self.low, self.high}
        if offset_sum > 0:
            # With an end below its sum, a copy lags by the whole; from there on, by the difference.
            ends |= {end for end in (offset_sum - 1, offset_sum) if self.low <= end <= self.high}
        lags = [task_lag(offset_sum, end) for end in ends]
        return min(lags), max(lags)


class SumPoint(NamedTuple):
    """A sum lay between ``low`` and ``high`` (offsets) at a time (ms since the epoch)."""

    at_ms: int
    low: int
    high: int

    @property
    def middle(self) -> float:
        """The middle of the bounds, in offsets."""
        return (self.low + self.high) / 2


class SumHistory:
    """The values of an offset sum, oldest first: a copy's position or lag, or its task's end."""

    # Three numbers a point, one point after the other: the time (ms) and the two bounds.
    __slots__ = ("_points",)

    def __init__(self) -> None:
        self._points = array("q")

    def add(self, at_ms: int, low: int, high: int) -> bool:
        """Add a point; return False for one older than the newest, which changes nothing.

        A second point of the same time replaces the first. A sum beyond Java's long stays at its
        greatest number, as Kafka's do.
        """
        points = self._points
        if points and at_ms <= points[-_COLUMNS]:
            if at_ms < points[-_COLUMNS]:
                return False
            del points[-_COLUMNS:]
        points.extend((at_ms, _in_long(low), _in_long(high)))
        if len(points) > POINTS_KEPT * _COLUMNS:
            kept = kept_points(points[::_COLUMNS], DENSE_POINTS, SPARSE_POINTS, HORIZON_MS)
            self._points = array("q", [number for index in kept for number in self._point(index)])
        return True

    def keep_last(self, count: int) -> None:
        """Remove all but the newest points."""
        surplus = len(self) - count
        if surplus > 0:
            # A copy, because an array doesn't give back what it has grown to.
            self._points = self._points[surplus * _COLUMNS :]

    def forget_after(self, at_ms: int) -> None:
        """Remove the points later than a time (ms)."""
        if self._points and self._points[-_COLUMNS] > at_ms:
            self._points = self._points[: bisect_right(self._points[::_COLUMNS], at_ms) * _COLUMNS]

    @property
    def last(self) -> SumPoint | None:
        """The newest point, None without one."""
        return self._point(len(self) - 1) if self._points else None

    def points(self, since_ms: int | None = None) -> list[SumPoint]:
        """Return the points, or those at or after a time, oldest first."""
        start = 0 if since_ms is None else bisect_left(self._points[::_COLUMNS], since_ms)
        return [self._point(index) for index in range(start, len(self))]

    def around(self, at_ms: int) -> EndOffsetSum | None:
        """Return bounds at a time of a sum that only grows, by the points around it.

        After the newest point it is assumed to have grown at most twice as fast as between any two
        of the newest points. None before the oldest one.
        """
        index = bisect_right(self._points[::_COLUMNS], at_ms)
        if not index:
            return None
        before = self._point(index - 1)
        if before.at_ms == at_ms:
            return EndOffsetSum(before.low, before.high)
        if index < len(self):
            return EndOffsetSum(before.low, self._point(index).high)
        newest = [self._point(at) for at in range(max(0, index - DENSE_POINTS), index)]
        fastest = max(
            ((after.high - was.low) / (after.at_ms - was.at_ms) for was, after in pairwise(newest)),
            default=0.0,
        )
        return EndOffsetSum(before.low, before.high + ceil(2 * fastest * (at_ms - before.at_ms)))

    @property
    def spacing_ms(self) -> int | None:
        """The median time between two of the newest points, in ms; None with fewer than two."""
        newest = self._points[::_COLUMNS][-DENSE_POINTS:]
        gaps = sorted(after - before for before, after in pairwise(newest))
        return gaps[len(gaps) // 2] if gaps else None

    def __len__(self) -> int:
        return len(self._points) // _COLUMNS

    def _point(self, index: int) -> SumPoint:
        start = index * _COLUMNS
        return SumPoint(*self._points[start : start + _COLUMNS])


def _in_long(number: int) -> int:
    return max(-LONG_MAX, min(number, LONG_MAX))
