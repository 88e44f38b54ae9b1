"""The lag of groups on many partitions at once: what ``partition_lag`` says of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caughtup.models.histories.end_columns import NEVER_MS, Ends
from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS
from caughtup.models.polls.column_reader import Ints, Rows
from caughtup.models.polls.commit_columns import NO_OFFSET

#: Beyond these (offsets), floats no longer tell neighbours apart.
_EXACT = 1 << 53


class LagColumns(NamedTuple):
    """``PartitionLag`` by column, and which partitions have end offsets; of others it means nothing."""

    known: Rows
    lag: Ints
    lag_committed_view: Ints
    out_of_range: Rows


def lag_columns(offset: Ints, commit_ms: Ints, ends: Ends) -> LagColumns:
    """Compute the lags of commits (int64, NO_OFFSET where there is none), each on its partition."""
    out_of_range = (offset > ends.end) & (commit_ms < ends.as_of_ms - CLOCK_ALLOWANCE_MS)
    position = np.where(out_of_range, ends.start, np.maximum(offset, ends.start))
    return LagColumns(
        ends.as_of_ms != NEVER_MS,
        np.maximum(ends.readable - position, 0),
        np.maximum(ends.end - position, 0),
        out_of_range,
    )


def retention_columns(offset: Ints, ends: Ends) -> tuple[Rows, NDArray[np.float64]]:
    """Compute ``retention_used`` of commits, each on its partition, and where it is known."""
    known: Rows = (offset != NO_OFFSET) & (ends.as_of_ms != NEVER_MS)
    size = ends.end - ends.start
    left = np.maximum(ends.end - offset, 0)
    used = np.where(offset < ends.start, 1.0, 0.0)
    np.divide(left, size, out=used, where=size > 0)
    if (np.maximum(left, size)[known] > _EXACT).any():
        for at in np.flatnonzero(known & (size > 0)).tolist():
            used[at] = left.item(at) / size.item(at)
    return known, used
