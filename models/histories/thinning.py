"""The choice of the points of a history that are kept: the newest all, older ones ever sparser."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

#: Factors by which the kept points may have to be further apart than if they were evenly spread: at
#: worst, a point that must stay is just behind the one before it. With 2, any history fits.
_SLACK = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0)


def kept_points(times_ms: Sequence[int], dense: int, sparse: int, horizon_ms: int) -> list[int]:
    """Return the indices of the points of a history to keep, ascending.

    ``times_ms`` is strictly increasing. The newest ``dense`` points stay. Of the older ones
    ``sparse`` stay, spread so that none is older than the next newer one by more than a factor, as
    far as there are points: so a past time is known with a precision relative to its age. The
    factor is about the least that lets them reach the oldest point, which itself stays until it is
    more than ``horizon_ms`` older than the newest.
    """
    newest = times_ms[-1]
    oldest = bisect_left(times_ms, newest - horizon_ms)
    first_dense = max(oldest, len(times_ms) - dense)
    kept_dense = list(range(first_dense, len(times_ms)))
    if first_dense == oldest:
        return kept_dense
    ages = [newest - at_ms for at_ms in times_ms[oldest : first_dense + 1]]
    ages[-1] = max(1, ages[-1])
    kept: list[int] = []
    for slack in _SLACK:
        kept = _spread(ages, (ages[0] / ages[-1]) ** (slack / sparse))
        if len(kept) <= sparse:
            break
    return [oldest + index for index in kept[-sparse:]] + kept_dense


def _spread(ages: Sequence[int], factor: float) -> list[int]:
    """Keep a point if leaving it out would put its neighbours further apart than a factor.

    ``ages`` falls; the last one always stays and isn't returned, the first one always stays, too.
    """
    kept = []
    limit = ages[-1] * factor
    for index in range(len(ages) - 2, 0, -1):
        if ages[index - 1] > limit:
            kept.append(index)
            limit = ages[index] * factor
    kept.append(0)
    kept.reverse()
    return kept
