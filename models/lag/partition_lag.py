"""How far a group is behind on a partition."""

from __future__ import annotations

from typing import NamedTuple

from caughtup.models.offsets import EndOffsets

#: How far a coordinator's clock and ours may differ before a commit counts as older than a sample
#: at the log's end, in ms. Taking a fresh commit for an old one would show the whole log as lag.
CLOCK_ALLOWANCE_MS = 10_000


class PartitionLag(NamedTuple):
    """How far a group is behind on a partition, in offsets, in both views.

    ``out_of_range``: the commit lies beyond the log, so the group's reset policy decides where
    it goes on (Kafka's ``OFFSET_OUT_OF_RANGE``).
    """

    lag: int
    lag_committed_view: int
    has_commit: bool
    out_of_range: bool = False


def partition_lag(
    committed: int | None, ends: EndOffsets, commit_timestamp_ms: int | None = None
) -> PartitionLag:
    """Compute a group's lag on a partition.

    ``lag`` is what a read_committed reader has yet to read, up to the last stable offset, but
    not the transaction markers at its end as far as they are known;
    ``lag_committed_view`` counts to the log end, open transactions included, as most tools do.
    Without a commit the backlog is counted from the log start. A commit before the log start
    counts from the log start too, since nothing before it can be read.

    Never negative: a commit can be newer than the end offsets it is compared with. But where
    ``commit_timestamp_ms`` says that it is older, a commit beyond the log end is one on a log
    that was recreated or lost its tail; it is out of range, and counts as no commit does.
    """
    start, end, readable = ends.start_offset, ends.end_offset, ends.readable_end_offset
    out_of_range = (
        committed is not None
        and committed > end
        and commit_timestamp_ms is not None
        and commit_timestamp_ms + CLOCK_ALLOWANCE_MS < ends.as_of_ms
    )
    # This is asked a million times for one scrape: comparisons are quicker than max().
    position = start if committed is None or out_of_range or committed < start else committed
    last = ends.last_stable_offset if readable is None else readable
    lag = last - position if last > position else 0
    lag_committed_view = end - position if end > position else 0
    return PartitionLag(lag, lag_committed_view, committed is not None, out_of_range)
