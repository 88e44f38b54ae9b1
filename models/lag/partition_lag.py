"""Lag arithmetic: of a group's partition, and of a task's copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

#: What a member reports for a task that it runs as active (``Task.LATEST_OFFSET``).
LATEST_OFFSET = -2
#: What a member reports for a task whose offsets it doesn't know (``UNKNOWN_OFFSET_SUM``).
UNKNOWN_OFFSET_SUM = -3
#: How far a coordinator's clock and ours may differ before a commit counts as older than a look
#: at the log's end, in ms. Taking a fresh commit for an old one would show the whole log as lag.
CLOCK_ALLOWANCE_MS = 10_000
#: Java's ``Long.MAX_VALUE``, where Kafka's sums stop when they overflow.
LONG_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class EndOffsets:
    """What a partition's leader said of its log at one moment.

    ``start_offset``, ``last_stable_offset`` and ``end_offset`` are offsets; ``as_of_ms`` is when
    they were asked for, in milliseconds since the epoch. ``readable_end_offset`` is where the last
    record before the last stable offset ends that a read_committed reader is given: transaction
    markers and aborted records may follow it. None where nobody looked.
    """

    start_offset: int
    last_stable_offset: int
    end_offset: int
    as_of_ms: int
    readable_end_offset: int | None = None


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
    """Tell how far a group is behind.

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


def task_lag(offset_sum: int, end_offset_sum: int) -> int:
    """Tell a copy's lag in offsets, as ``ClientState.computeTaskLags`` does.

    The sentinels -2 (running active) and -3 (unknown) stay what they are. A sum beyond the end
    means a changelog that was recreated under the copy: everything is to be restored.
    """
    if offset_sum in (LATEST_OFFSET, UNKNOWN_OFFSET_SUM):
        return offset_sum
    return end_offset_sum if end_offset_sum < offset_sum else end_offset_sum - offset_sum


def sum_offsets(offsets: list[int]) -> int:
    """Add offsets as Kafka adds them: a sum beyond Java's long stays at its maximum."""
    return min(sum(offsets), LONG_MAX)
