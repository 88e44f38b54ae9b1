"""Offsets: the end of a log, members' offset sums, and their arithmetic."""

from __future__ import annotations

from typing import NamedTuple

#: The reported offset sum of a running active (``Task.LATEST_OFFSET``).
LATEST_OFFSET = -2
#: The reported offset sum of a task with unknown offsets (``UNKNOWN_OFFSET_SUM``).
UNKNOWN_OFFSET_SUM = -3
#: Java's ``Long.MAX_VALUE``, to which Kafka limits its sums.
LONG_MAX = (1 << 63) - 1


class EndOffsets(NamedTuple):
    """The offsets that a partition's leader reported at one time.

    ``start_offset``, ``last_stable_offset`` and ``end_offset`` are offsets; ``as_of_ms`` is the
    time of the request, in milliseconds since the epoch. ``readable_end_offset`` is the offset
    after the last record before the last stable offset that a read_committed consumer is given:
    only transaction markers and aborted records follow. None if unknown.
    """

    start_offset: int
    last_stable_offset: int
    end_offset: int
    as_of_ms: int
    readable_end_offset: int | None = None

    def with_readable_end_of(self, earlier: EndOffsets | None) -> EndOffsets:
        """Return these end offsets with the readable end of earlier ones, where it still holds.

        It holds while the last stable offset is the same. Who looked it up began to read at the
        committed offset of a group of its own: of two readable ends the lower is exact.
        """
        if earlier is None or earlier.last_stable_offset != self.last_stable_offset:
            return self
        known, found = self.readable_end_offset, earlier.readable_end_offset
        if found is None or earlier.start_offset > self.start_offset:  # a topic of the same name
            return self
        return self if known is not None and known <= found else self.with_readable_end(found)

    def repeats(self, earlier: EndOffsets) -> bool:
        """Return whether all offsets are those of an earlier sample."""
        return self[:3] == earlier[:3] and self.readable_end_offset == earlier.readable_end_offset

    def with_readable_end(self, offset: int | None) -> EndOffsets:
        """Return these end offsets with another readable end, None for an unknown one."""
        return EndOffsets(*self[:-1], offset)


def task_lag(offset_sum: int, end_offset_sum: int) -> int:
    """Return a copy's lag in offsets, as ``ClientState.computeTaskLags`` does.

    The sentinels -2 (running active) and -3 (unknown) are returned unchanged. A sum beyond the end
    means that the changelog was recreated: everything has to be restored.
    """
    if offset_sum in (LATEST_OFFSET, UNKNOWN_OFFSET_SUM):
        return offset_sum
    return end_offset_sum if end_offset_sum < offset_sum else end_offset_sum - offset_sum


def sum_offsets(offsets: list[int]) -> int:
    """Return the sum of offsets as Kafka computes it: at most Java's ``Long.MAX_VALUE``."""
    return min(sum(offsets), LONG_MAX)
