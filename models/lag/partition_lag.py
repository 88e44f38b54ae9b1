"""The lag of a group on a partition, in offsets: of one partition, or of many as columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caughtup.models.histories.end_columns import NEVER_MS, Ends
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.column_reader import Ints, Rows
from caughtup.models.polls.commit_columns import NO_OFFSET

#: The tolerated difference (ms) between the coordinator's clock and ours when a commit is compared
#: with a sample of the log end. Taking a new commit for an old one would show the whole log as lag.
CLOCK_ALLOWANCE_MS = 10_000


class PartitionLag(NamedTuple):
    """A group's lag on a partition in offsets, up to the last stable offset and to the log end.

    ``out_of_range``: the commit lies beyond the log end, so ``auto.offset.reset`` decides where the
    group continues (Kafka's ``OFFSET_OUT_OF_RANGE``).
    """

    lag: int
    lag_committed_view: int
    has_commit: bool
    out_of_range: bool = False


def partition_lag(
    committed: int | None, ends: EndOffsets, commit_timestamp_ms: int | None = None
) -> PartitionLag:
    """Return a group's lag on a partition.

    ``lag`` counts the offsets up to the readable end or, where that is unknown, the last stable
    offset. So markers and aborted records at the tail don't count; those between records do.
    ``lag_committed_view`` counts to the log end, open transactions included, as most tools do. Without a commit, or with one before the
    log start, both count from the log start.

    Lags aren't negative: a commit can be newer than the end offsets. But if a commit is beyond the
    log end and older than the end offsets (``commit_timestamp_ms``), it is from before the topic was
    recreated or the log lost its tail: it is out of range, and counts as no commit.
    """
    start, end, readable = ends.start_offset, ends.end_offset, ends.readable_end_offset
    out_of_range = (
        committed is not None
        and committed > end
        and commit_timestamp_ms is not None
        and commit_timestamp_ms + CLOCK_ALLOWANCE_MS < ends.as_of_ms
    )
    # This is called a million times for one scrape: comparisons are faster than max().
    position = start if committed is None or out_of_range or committed < start else committed
    last = ends.last_stable_offset if readable is None else readable
    lag = last - position if last > position else 0
    lag_committed_view = end - position if end > position else 0
    return PartitionLag(lag, lag_committed_view, committed is not None, out_of_range)


#: Beyond this, float64 doesn't represent every integer.
_EXACT = 1 << 53


class LagColumns(NamedTuple):
    """``PartitionLag`` by column; the rows that aren't ``known`` have no end offsets and no meaning."""

    known: Rows
    lag: Ints
    lag_committed_view: Ints
    out_of_range: Rows


def lag_columns(offset: Ints, commit_ms: Ints, ends: Ends) -> LagColumns:
    """Return ``partition_lag`` of each row; ``offset`` is int64, NO_OFFSET without a commit."""
    out_of_range = (offset > ends.end) & (commit_ms < ends.as_of_ms - CLOCK_ALLOWANCE_MS)
    position = np.where(out_of_range, ends.start, np.maximum(offset, ends.start))
    return LagColumns(
        ends.as_of_ms != NEVER_MS,
        np.maximum(ends.readable - position, 0),
        np.maximum(ends.end - position, 0),
        out_of_range,
    )


def retention_columns(offset: Ints, ends: Ends) -> tuple[Rows, NDArray[np.float64]]:
    """Return where ``retention_used`` is known, and its value (float64), for each row."""
    known: Rows = (offset != NO_OFFSET) & (ends.as_of_ms != NEVER_MS)
    size = ends.end - ends.start
    left = np.maximum(ends.end - offset, 0)
    used = np.where(offset < ends.start, 1.0, 0.0)
    np.divide(left, size, out=used, where=size > 0)
    if (np.maximum(left, size)[known] > _EXACT).any():
        for at in np.flatnonzero(known & (size > 0)).tolist():
            used[at] = left.item(at) / size.item(at)
    return known, used
