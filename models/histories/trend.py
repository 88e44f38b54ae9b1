"""How fast an offset sum moves and how sure that is, and when a lag will be gone.

A trend is the median slope between points that lie at least half of the span apart. A jump in
the first or the last step doesn't turn it, and neither do the plateaus of a sum that moves in
batches; what happens in the middle counts as way made. Two errors are told apart:

- *slack* is a bound: each point is only known to lie between two values.
- *variance* is a statistic: how unevenly the sum moved from point to point. It makes the trend
  uncertain, and the way that is still ahead, too. Where the text says "95 of 100", it is meant
  for steps that are as uneven as those seen, and for a pace that stays what it is; nobody knows
  the second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from caughtup.models.histories.offset_sums import SumPoint

#: By how much more a median of slopes varies than the slope from end to end would, where each step
#: is independent of the others (a simulation of 4 to 20 points gives 1.03 to 1.18).
_MEDIAN_LOSS = 1.2
#: Offsets are whole. A lag is the difference of two, so one more or less; its change over half a
#: span is two more or less, which is so many offsets over the span.
_GRAIN = 4
#: Student's t for 95 of 100, by degrees of freedom from 1 on; beyond, the last.
_T_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
)


class Trend(NamedTuple):
    """How fast a sum moves, in offsets a second.

    ``variance``: of the way made in one second (offsets² a second), infinite where a single step
    tells nothing of it. ``slack``: bound of the error that the points' own bounds make, in
    offsets a second. ``span_seconds`` and ``steps``: what it was taken from.
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
        """How far the trend may be off in 95 of 100 cases, in offsets a second."""
        return math.sqrt(_MEDIAN_LOSS * self.scatter / self.span_seconds) + self.slack

    def __neg__(self) -> Trend:
        return self._replace(per_second=-self.per_second)


class Eta(NamedTuple):
    """In how many seconds a copy is caught up: infinite = never.

    In 95 of 100 cases between ``low`` and ``high``, as long as it keeps its pace.
    """

    seconds: float
    low: float
    high: float

    def after(self, elapsed_seconds: float) -> Eta:
        """Return what is left of it after some seconds, never less than 0."""
        return Eta(*(max(0.0, seconds - elapsed_seconds) for seconds in self))


def median(values: Sequence[float]) -> float:
    """Return the middle of some values, or of the two in the middle; of one at least.

    Python's own is in a module that loads randomness, which the models do without.
    """
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def trend(points: Sequence[SumPoint]) -> Trend | None:
    """Compute the trend of a sum from its points, oldest first; None from fewer than two."""
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
    """Compute when a distance will be closed at a trend, counted from the distance's moment.

    ``distance``: the offsets to go, between two bounds. The error counts what isn't known of the
    trend, and that the rest of the way will be as uneven as the way so far.
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

    1.2 E² / span is what isn't known of the speed, E the unevenness of what is still ahead. The
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
