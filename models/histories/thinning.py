"""The choice of the points of a history that are kept: the newest all, older ones ever sparser."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caughtup.models.polls.column_reader import Ints, Rows

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


def kept_points_of_each(times_ms: Ints, dense: int, sparse: int, horizon_ms: int) -> Rows:
    """Return which points of several histories ``kept_points`` keeps.

    ``times_ms``: int64, a row for each history, all of the same length; as for ``kept_points``, and
    within 2**52 ms of each other. The result has the same shape.
    """
    count = times_ms.shape[1]
    column = np.arange(count)
    ages = times_ms[:, -1:] - times_ms
    oldest = (ages > horizon_ms).sum(axis=1)
    kept: Rows = column >= np.maximum(oldest, count - dense)[:, None]
    rows = np.flatnonzero(oldest < count - dense)
    if not rows.size:
        return kept
    # The first is the newest of the dense ones, as each is compared with the ones that are newer.
    ages, oldest = ages[rows, : count - dense + 1][:, ::-1], count - dense - oldest[rows]
    ages[:, 0] = np.maximum(ages[:, 0], 1)
    ratios = (ages[np.arange(len(rows)), oldest] / ages[:, 0]).tolist()
    spread = np.zeros(ages.shape, np.bool_)
    left = np.arange(len(rows))
    for slack in _SLACK:
        # Python's power, for numpy's may differ in the last bit.
        factors = np.array([ratios[at] ** (slack / sparse) for at in left.tolist()])
        spread[left] = _spread_each(ages[left], oldest[left], factors)
        left = left[spread[left].sum(axis=1) > sparse]
        if not left.size:
            break
    spread &= np.cumsum(spread, axis=1) <= sparse
    kept[rows, : count - dense + 1] |= spread[:, ::-1]
    return kept


def _spread_each(ages: Ints, oldest: Ints, factors: NDArray[np.float64]) -> Rows:
    """Do as ``_spread`` for each row of ages, which rise here, up to the place of its oldest."""
    kept = np.zeros(ages.shape, np.bool_)
    limit = ages[:, 0] * factors
    for index in range(1, ages.shape[1] - 1):
        keeps = (ages[:, index + 1] > limit) & (index < oldest)
        kept[:, index] = keeps
        limit = np.where(keeps, ages[:, index] * factors, limit)
    kept[np.arange(len(ages)), oldest] = True
    return kept
