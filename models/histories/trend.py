"""The rate at which an offset sum changes, its error, and the time until a lag is 0.

A trend is the median slope between points that lie at least half of the span apart. A jump in the
first or the last step doesn't change it, and neither do the plateaus of a sum that changes in
batches. There are two errors:

- *slack* is a bound: each point is only known to lie between two values.
- *variance* is a statistic: how unevenly the sum changed from point to point. It makes the trend
  uncertain, and the rest of the way, too. "95 of 100" assumes that further steps are as uneven as
  those seen, and that the rate stays the same; the latter is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from caughtup.models.histories.offset_sums import SumPoint

#: The factor by which a median of slopes varies more than the slope from end to end, with each step
#: independent of the others (a simulation of 4 to 20 points gives 1.03 to 1.18).
_MEDIAN_LOSS = 1.2
#: The rounding error over a span, in offsets: offsets are whole numbers, so a lag is exact to one
#: offset, its change over half a span to two, and so over the span to four.
_GRAIN = 4
#: Student's t for 95 of 100, by degrees of freedom from 1 on; beyond, the last.
_T_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)


class Trend(NamedTuple):
    """The rate at which a sum changes, in offsets a second.

    ``variance``: of the change in one second (offsets² a second), infinite with a single step,
    which says nothing of it. ``slack``: the bound of the error from the points' own bounds, in
    offsets a second. ``span_seconds`` and ``steps``: the time and the number of steps that it was
    computed from.
    """

    per_second: float
    variance: float
    slack: float
    span_seconds: float
    steps: int

    @property
    def scatter(self) -> float:
        """Student's t² times the variance, in offsets² a second."""
        return _T_95[min(max(self.steps - 1, 1), len(_T_95)) - 1] ** 2 * self.variance

    @property
    def error(self) -> float:
        """The error of the trend in 95 of 100 cases, in offsets a second."""
        return math.sqrt(_MEDIAN_LOSS * self.scatter / self.span_seconds) + self.slack

    def __neg__(self) -> Trend:
        return self._replace(per_second=-self.per_second)


class Eta(NamedTuple):
    """The seconds until a copy is caught up: infinite = never.

    In 95 of 100 cases between ``low`` and ``high``, if its rate stays the same.
    """

    seconds: float
    low: float
    high: float

    def after(self, elapsed_seconds: float) -> Eta:
        """Return the ETA some seconds later, never less than 0."""
        return Eta(*(max(0.0, seconds - elapsed_seconds) for seconds in self))


def median(values: Sequence[float]) -> float:
    """Return the median of at least one value.

    Python's own is in a module that loads randomness, which the models don't import.
    """
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def trend(points: Sequence[SumPoint]) -> Trend | None:
    """Return the trend of a sum from its points, oldest first; None from fewer than two."""
    if len(points) < 2:
        return None
    span = (points[-1].at_ms - points[0].at_ms) / 1000
    slopes: list[float] = []
    lowest: list[float] = []
    highest: list[float] = []
    for index, start in enumerate(points):
        for end in points[index + 1 :]:
            seconds = (end.at_ms - start.at_ms) / 1000
            if seconds * 2 >= span:
                slopes.append((end.middle - start.middle) / seconds)
                lowest.append((end.low - start.high) / seconds)
                highest.append((end.high - start.low) / seconds)
    per_second = median(slopes)
    slack = max(per_second - median(lowest), median(highest) - per_second)
    steps = len(points) - 1
    variance = math.inf
    if steps > 1:
        variance = 0.0
        for before, after in pairwise(points):
            seconds = (after.at_ms - before.at_ms) / 1000
            residual = after.middle - before.middle - per_second * seconds
            variance += residual * residual / seconds
        variance /= steps - 1
    return Trend(per_second, variance, slack, span, steps)


def time_to_go(distance: SumPoint, closing: Trend) -> Eta:
    """Return when a distance will be closed at a trend, counted from the distance's time.

    ``distance``: the offsets to go, between two bounds. The error includes that of the trend, and
    that the rest of the way will be as uneven as the way so far.
    """
    if distance.high <= 0:
        return Eta(0.0, 0.0, 0.0)
    speed = closing.per_second
    seconds = max(0.0, distance.middle) / speed if speed > 0 else math.inf
    if math.isinf(closing.variance):
        return Eta(seconds, 0.0, math.inf)
    slack = closing.slack + _GRAIN / closing.span_seconds
    low = _crossing(max(0, distance.low), speed + slack, closing, first=True)
    high = _crossing(distance.high, speed - slack, closing, first=False)
    return Eta(seconds, min(low, seconds), max(high, seconds))


def _crossing(distance: float, speed: float, closing: Trend, *, first: bool) -> float:
    """Solve distance - speed x E = ± sqrt(scatter x (1.2 E² / span + E)) for E, in seconds.

    1.2 E² / span is the uncertainty of the speed, E the unevenness of the rest of the way. The
    first solution is the earliest arrival, the last one the latest.
    """
    if distance <= 0:
        return 0.0
    scatter = closing.scatter
    # leading x E² - linear x E + distance² = 0
    leading = speed * speed - _MEDIAN_LOSS * scatter / closing.span_seconds
    linear = 2 * distance * speed + scatter
    gains = speed > 0 and leading > 0
    if not first and not gains:
        return math.inf
    if leading > 0 and not gains:
        return math.inf
    root = math.sqrt(max(0.0, linear * linear - 4 * leading * distance * distance))
    if first:
        divisor = linear + root
        return 2 * distance * distance / divisor if divisor > 0 else math.inf
    return (linear + root) / (2 * leading)
