"""The lag of a group on many partitions of a topic at once: what ``partition_lag`` says of each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caughtup.models.histories.end_columns import NEVER_MS, EndColumns
from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS
from caughtup.models.polls.column_reader import Ints, Rows


class LagColumns(NamedTuple):
    """``PartitionLag`` by column, and which partitions have end offsets; of others it means nothing."""

    known: Rows
    lag: Ints
    lag_committed_view: Ints
    out_of_range: Rows


def lag_columns(partitions: Ints, offset: Ints, commit_ms: Ints, ends: EndColumns) -> LagColumns:
    """Compute the lags of commits on partitions of a topic (all int64, of the same length)."""
    inside = partitions < len(ends.end)
    at = np.where(inside, partitions, 0) if len(ends.end) else np.zeros_like(partitions)
    if not len(ends.end):
        nothing = np.zeros(len(partitions), np.bool_)
        return LagColumns(nothing, at, at, nothing)
    as_of_ms, end, start = ends.as_of_ms[at], ends.end[at], ends.start[at]
    out_of_range = (offset > end) & (commit_ms < as_of_ms - CLOCK_ALLOWANCE_MS)
    position = np.where(out_of_range, start, np.maximum(offset, start))
    return LagColumns(
        inside & (as_of_ms != NEVER_MS),
        np.maximum(ends.readable[at] - position, 0),
        np.maximum(end - position, 0),
        out_of_range,
    )
