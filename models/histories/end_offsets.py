"""End offsets over time, so that the end offset at a past time can be bounded.

A leader decides with the end offsets that it lists at that time, and publishes them nowhere. But
end offsets only grow, so the sample before and the sample after a time bound them. The same samples
show since when a record could be read: the age of an unread one.

A history is bounded: all of the newest samples stay, which decisions need, and older ones are
sparser with age, so that about forty samples reach back for hours. Leaving out a sample between two
others widens a bound and never makes it false.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from caughtup.models.histories.thinning import kept_points
from caughtup.models.offsets import EndOffsets

#: The number of newest samples, which all stay: at one a second, more than a decision waits for.
DENSE_SAMPLES = 20
#: The number of older samples, and the age of the oldest in ms. From 20 s to four hours, 22 samples
#: differ from their neighbours by a third in age.
SPARSE_SAMPLES = 22
HORIZON_MS = 4 * 3_600_000
#: A history is thinned when it has more samples: more than stay, so that it is thinned rarely.
SAMPLES_KEPT = DENSE_SAMPLES + SPARSE_SAMPLES + 8


class ReadableEnd(NamedTuple):
    """The end of the records for a read_committed consumer, and the time of the sample (ms)."""

    readable_end: int
    at_ms: int


class EndOffsetHistory:
    """Samples of one partition, oldest first; a log that doesn't change takes two samples.

    ``latest`` is the complete newest sample. The readable end is the last stable offset, less the
    transaction markers before it if they are known to be markers. ``held_ms`` is the time (ms) of
    the first sample at which the last stable offset was where it is now, with records behind it;
    None if there are none, so that no transaction is open.
    """

    __slots__ = ("_ends", "_readable", "_times_ms", "held_ms", "latest")

    def __init__(self, first: EndOffsets) -> None:
        self.latest = first
        self.held_ms = first.as_of_ms if _is_held(first) else None
        self._times_ms = array("q", (first.as_of_ms,))
        self._ends = array("q", (first.end_offset,))
        #: The readable ends; ``_ends`` itself as long as none differs, as without transactions.
        self._readable = _shared(self._ends, array("q", (_readable_end(first),)))

    def copy(self) -> EndOffsetHistory:
        """Return a copy that later samples do not change."""
        copied = object.__new__(EndOffsetHistory)
        copied.latest, copied.held_ms = self.latest, self.held_ms
        copied._times_ms, copied._ends = self._times_ms[:], self._ends[:]
        copied._readable = _shared(copied._ends, self._readable[:])
        return copied

    def add(self, sample: EndOffsets, now_ms: int | None = None) -> bool:
        """Add a sample; one older than the latest is ignored.

        Return whether it did more than to repeat the latest, of a log that two samples or more had
        as it is.

        The exception is a latest sample whose time is later than ``now_ms``: the clock has been set
        back since, and samples from after ``now_ms`` are removed. A log whose end went back was
        recreated, or lost its tail with its leader. Which of its records have other offsets now is
        unknown, so its history starts again.
        """
        ends, readable, times_ms = self._ends, self._readable, self._times_ms
        is_level = len(ends) > 1 and ends[-2] == ends[-1] and readable[-2] == readable[-1]
        is_later = sample.as_of_ms >= times_ms[-1]
        if is_level and is_later and sample.repeats(self.latest):
            self.latest, times_ms[-1] = sample, sample.as_of_ms
            return False
        if sample.as_of_ms < times_ms[-1]:
            seen = len(times_ms) if now_ms is None else bisect_right(times_ms, now_ms)
            if seen == len(times_ms) or (seen and sample.as_of_ms < times_ms[seen - 1]):
                return False
            self._drop_from(seen)
        if not _is_held(sample):
            self.held_ms = None
        elif self.held_ms is None or sample.last_stable_offset != self.latest.last_stable_offset:
            self.held_ms = sample.as_of_ms
        else:
            self.held_ms = min(self.held_ms, sample.as_of_ms)  # the clock may have been set back
        self.latest = sample
        end, readable_end = sample.end_offset, _readable_end(sample)
        if ends and end < ends[-1]:
            self._drop_from(0)
        if readable is ends and readable_end != end:
            readable = self._readable = ends[:]
        # Offsets that turn out to be no records were none before, either.
        for index in range(bisect_right(readable, readable_end), len(readable)):
            readable[index] = readable_end
        if ends and sample.as_of_ms == times_ms[-1]:
            ends[-1], readable[-1] = end, readable_end
            return True
        if len(ends) > 1 and end == ends[-2] and readable_end == readable[-2]:
            ends[-1], readable[-1], times_ms[-1] = end, readable_end, sample.as_of_ms
            return True
        ends.append(end)
        if readable is not ends:
            readable.append(readable_end)
        times_ms.append(sample.as_of_ms)
        if len(ends) > SAMPLES_KEPT:
            self._thin()
        return True

    def _thin(self) -> None:
        kept = kept_points(self._times_ms, DENSE_SAMPLES, SPARSE_SAMPLES, HORIZON_MS)
        readable = array("q", [self._readable[index] for index in kept])
        self._ends = array("q", [self._ends[index] for index in kept])
        self._readable = _shared(self._ends, readable)
        self._times_ms = array("q", [self._times_ms[index] for index in kept])

    def _drop_from(self, index: int) -> None:
        """Drop the samples from an index on."""
        if self._readable is not self._ends:
            del self._readable[index:]
        del self._ends[index:], self._times_ms[index:]

    def at_or_before(self, moment_ms: int) -> int | None:
        """Return the log end offset of the last sample at or before a time; None without one."""
        index = bisect_right(self._times_ms, moment_ms)
        return self._ends[index - 1] if index else None

    def at_or_after(self, moment_ms: int) -> int | None:
        """Return the log end offset of the first sample at or after a time; None without one."""
        index = bisect_left(self._times_ms, moment_ms)
        return self._ends[index] if index < len(self._ends) else None

    def around(self, offset: int) -> tuple[ReadableEnd | None, ReadableEnd | None]:
        """Return the two samples between which a record at an offset became readable.

        The first is the last sample without such a record, None if even the first had one; the
        second is the first sample with one, None if there is none yet.
        """
        readable, times_ms = self._readable, self._times_ms
        index = bisect_right(readable, offset)
        return (
            ReadableEnd(readable[index - 1], times_ms[index - 1]) if index else None,
            ReadableEnd(readable[index], times_ms[index]) if index < len(readable) else None,
        )

    def unread_at_ms(self, offset: int) -> int:
        """Return the time (ms) of the last sample without a record at an offset, 0 without one."""
        index = bisect_right(self._readable, offset)
        return self._times_ms[index - 1] if index else 0

    def readable_end_at(self, moment_ms: int) -> float | None:
        """Return the interpolated readable end at a time; None outside of the samples."""
        readable, times_ms = self._readable, self._times_ms
        index = bisect_left(times_ms, moment_ms)
        if index == len(times_ms):
            return None
        later = times_ms[index]
        if later == moment_ms:
            return readable[index]
        if not index:
            return None
        earlier, end = times_ms[index - 1], readable[index - 1]
        return end + (readable[index] - end) * (moment_ms - earlier) / (later - earlier)

    @property
    def first(self) -> ReadableEnd:
        """The oldest sample."""
        return ReadableEnd(self._readable[0], self._times_ms[0])

    @property
    def first_ms(self) -> int:
        """The time of the oldest sample, in ms since the epoch."""
        return self._times_ms[0]

    @property
    def last_ms(self) -> int:
        """The time of the newest sample, in ms since the epoch."""
        return self._times_ms[-1]

    @property
    def spacing_ms(self) -> int:
        """The time (ms) between the newest two samples that differ, which is the resolution.

        0 for a log that never changed.
        """
        readable, times_ms = self._readable, self._times_ms
        index = bisect_left(readable, readable[-1])
        return times_ms[index] - times_ms[index - 1] if index else 0

    def __len__(self) -> int:
        return len(self._ends)


def _shared(ends: array[int], readable: array[int]) -> array[int]:
    """Return the readable ends: the log end offsets' own array if all are equal to those."""
    return ends if readable == ends else readable


def _is_held(sample: EndOffsets) -> bool:
    return sample.last_stable_offset < sample.end_offset


def _readable_end(sample: EndOffsets) -> int:
    readable = sample.readable_end_offset
    return sample.last_stable_offset if readable is None else readable
