"""Copies that one thread restores: when one is there, the others get the pace that it had.

A stream thread restores all of its copies with one consumer and writes them one after the other,
so they share what it can do. A time to go at a copy's own pace is therefore the longest; the
likely one counts on what the copies beside it leave behind. That nothing is left behind is
possible, too, where something else than the thread is the limit, so it stays the upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from caughtup.models.copies.figures import CopyFigures
from caughtup.models.histories.trend import Eta


def with_shared_pace(figures: Sequence[CopyFigures]) -> list[CopyFigures]:
    """Return one thread's copies' figures, with times to go that count on each other."""
    moving = [index for index, copy in enumerate(figures) if _moves(copy)]
    shared = list(figures)
    if len(moving) < 2:
        return shared
    likely = _arrivals([figures[index] for index in moving], earliest=False)
    earliest = _arrivals([figures[index] for index in moving], earliest=True)
    for place, index in enumerate(moving):
        copy, seconds = figures[index], likely[place]
        own = copy.eta
        if own is None or seconds >= own.seconds:
            continue
        shared[index] = copy._replace(
            eta=Eta(seconds, min(own.low, earliest[place], seconds), own.high),
            there_before=sum(other < seconds for other in likely),
        )
    return shared


def _moves(copy: CopyFigures) -> bool:
    """Return whether a copy shares the pace: it isn't caught up, and restores."""
    if copy.eta is None or copy.eta.seconds == 0 or copy.estimated_lag is None:
        return False
    return copy.rate is not None and copy.rate > 0


def _arrivals(copies: Sequence[CopyFigures], *, earliest: bool) -> list[float]:
    """Return when each copy is caught up (s), by their likely or their earliest times to go."""
    rates = [copy.rate or 0.0 for copy in copies]
    speeds = [0.0 if copy.closing is None else copy.closing.per_second for copy in copies]
    ways = [_way(copy, earliest=earliest) for copy in copies]
    arrivals = [math.inf] * len(copies)
    under_way = set(range(len(copies)))
    now = 0.0
    while gaining := [(ways[one] / speeds[one], one) for one in under_way if speeds[one] > 0]:
        seconds, first = min(gaining)
        now += seconds
        arrivals[first] = now
        under_way.discard(first)
        total = math.fsum(rates[one] for one in sorted(under_way))
        for one in under_way:
            ways[one] = max(0.0, ways[one] - speeds[one] * seconds)
            share = speeds[first] * rates[one] / total
            speeds[one] += share
            rates[one] += share
    return arrivals


def _way(copy: CopyFigures, *, earliest: bool) -> float:
    """Return how many offsets a copy has to gain."""
    eta, closing = copy.eta, copy.closing
    if eta is not None and closing is not None and math.isfinite(eta.seconds):
        return closing.per_second * (eta.low if earliest else eta.seconds)
    return float(max(0, (copy.estimated_lag or 0) - copy.limit))
