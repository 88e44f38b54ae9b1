"""Offsets: where a log ends, what members report of their copies, and how these are added."""

from __future__ import annotations

from dataclasses import dataclass

#: What a member reports for a task that it runs as active (``Task.LATEST_OFFSET``).
LATEST_OFFSET = -2
#: What a member reports for a task whose offsets it doesn't know (``UNKNOWN_OFFSET_SUM``).
UNKNOWN_OFFSET_SUM = -3
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


def task_lag(offset_sum: int, end_offset_sum: int) -> int:
    """Compute a copy's lag in offsets, as ``ClientState.computeTaskLags`` does.

    The sentinels -2 (running active) and -3 (unknown) stay what they are. A sum beyond the end
    means a changelog that was recreated under the copy: everything is to be restored.
    """
    if offset_sum in (LATEST_OFFSET, UNKNOWN_OFFSET_SUM):
        return offset_sum
    return end_offset_sum if end_offset_sum < offset_sum else end_offset_sum - offset_sum


def sum_offsets(offsets: list[int]) -> int:
    """Add offsets as Kafka adds them: a sum beyond Java's long stays at its maximum."""
    return min(sum(offsets), LONG_MAX)
