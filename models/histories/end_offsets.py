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
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from caughtup.models.histories.end_columns import NOT_HELD_MS, UNKNOWN_ROW, EndColumns, TopicRows
from caughtup.models.histories.thinning import kept_points
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.column_reader import Ints

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
        self._ends = array("q", (first.end_offset,))
        self._readable = array("q", (_readable_end(first),))
        self._times_ms = array("q", (first.as_of_ms,))

    def copy(self) -> EndOffsetHistory:
        """Return a copy that later samples do not change."""
        copied = object.__new__(EndOffsetHistory)
        copied.latest, copied.held_ms = self.latest, self.held_ms
        copied._times_ms = self._times_ms[:]
        copied._ends, copied._readable = self._ends[:], self._readable[:]
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
        if is_level and is_later and _offsets(sample) == _offsets(self.latest):
            self.latest, times_ms[-1] = sample, sample.as_of_ms
            return False
        if sample.as_of_ms < times_ms[-1]:
            seen = len(times_ms) if now_ms is None else bisect_right(times_ms, now_ms)
            if seen == len(times_ms) or (seen and sample.as_of_ms < times_ms[seen - 1]):
                return False
            del ends[seen:], readable[seen:], times_ms[seen:]
        if not _is_held(sample):
            self.held_ms = None
        elif self.held_ms is None or sample.last_stable_offset != self.latest.last_stable_offset:
            self.held_ms = sample.as_of_ms
        else:
            self.held_ms = min(self.held_ms, sample.as_of_ms)  # the clock may have been set back
        self.latest = sample
        end, readable_end = sample.end_offset, _readable_end(sample)
        if ends and end < ends[-1]:
            del ends[:], readable[:], times_ms[:]
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
        readable.append(readable_end)
        times_ms.append(sample.as_of_ms)
        if len(ends) > SAMPLES_KEPT:
            self._thin()
        return True

    def _thin(self) -> None:
        kept = kept_points(self._times_ms, DENSE_SAMPLES, SPARSE_SAMPLES, HORIZON_MS)
        self._ends = array("q", [self._ends[index] for index in kept])
        self._readable = array("q", [self._readable[index] for index in kept])
        self._times_ms = array("q", [self._times_ms[index] for index in kept])

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


class EndOffsetTable:
    """Every partition's end offsets: the latest, and enough of the past to bound a time.

    ``columns`` has the newest samples, by row. ``layout`` changes whenever a row may have become
    another partition's.
    """

    def __init__(self) -> None:
        self.columns = EndColumns()
        self.layout = 0
        self._histories: dict[TopicPartition, EndOffsetHistory] = {}
        #: Topic → partition → row.
        self._rows: dict[str, dict[int, int]] = {}
        self._topic_rows: dict[str, TopicRows] = {}
        #: The number of samples so far, and its value at the last one of each topic, and at the last
        #: one that didn't only repeat the one before it.
        self.samples = 0
        self._changed: dict[str, int] = {}
        self._last_moved: dict[str, int] = {}
        #: The time of the newest sample of any partition (ms); None without any.
        self.newest_ms: int | None = None

    def apply(
        self, partition: TopicPartition, sample: EndOffsets | None, now_ms: int | None = None
    ) -> None:
        """Apply a sample, or None if the partition is deleted; ``now_ms`` is the time now, if known."""
        if sample is None:
            if self._histories.pop(partition, None) is not None:
                self._remove(*partition)
            return
        newest_ms = self.newest_ms
        is_to_come = newest_ms is not None and now_ms is not None and newest_ms > now_ms
        if newest_ms is None or sample.as_of_ms > newest_ms or is_to_come:
            self.newest_ms = sample.as_of_ms
        history = self._histories.get(partition)
        if history is None:
            self._add(partition, EndOffsetHistory(sample))
            return
        has_moved = history.add(sample, now_ms)
        topic, number = partition
        row = self._rows[topic][number]
        self.columns.put(row, history.latest, history.held_ms)
        self.samples += 1
        self._changed[topic] = self.samples
        if has_moved:
            self._last_moved[topic] = self.columns.moved[row] = self.samples

    def _add(self, partition: TopicPartition, history: EndOffsetHistory) -> None:
        self._histories[partition] = history
        topic, number = partition
        row = self._rows.setdefault(topic, {})[number] = self.columns.add()
        self.columns.put(row, history.latest, history.held_ms)
        self._relaid(topic, row)

    def _remove(self, topic: str, number: int) -> None:
        rows = self._rows[topic]
        row = rows.pop(number)
        self.columns.remove(row)
        self._relaid(topic, row)
        if not rows:
            del self._rows[topic], self._changed[topic], self._last_moved[topic]

    def _relaid(self, topic: str, row: int) -> None:
        self._topic_rows.pop(topic, None)
        self.layout += 1
        self.samples += 1
        self._changed[topic] = self._last_moved[topic] = self.columns.moved[row] = self.samples

    def rows(self, topic: str, partitions: Ints) -> Ints:
        """Return the rows of a topic's partitions in ``columns``, valid until ``layout`` changes.

        UNKNOWN_ROW for partitions without a sample.
        """
        known = self._topic_rows.get(topic)
        if known is None:
            of_topic = self._rows.get(topic)
            if of_topic is None:
                return np.full(len(partitions), UNKNOWN_ROW, np.int64)
            known = self._topic_rows[topic] = TopicRows(of_topic)
        return known.of(partitions)

    def changed(self, topic: str) -> int:
        """Return a number that changes with each sample of any of the topic's partitions.

        It also changes when a partition is added or removed; 0 without any.
        """
        return self._changed.get(topic, 0)

    def moved(self, topic: str) -> int:
        """Return ``changed`` without the samples that only repeat the one before them.

        Such a sample tells of a log that hasn't changed only that it is still so.
        """
        return self._last_moved.get(topic, 0)

    def latest(self, partition: TopicPartition) -> EndOffsets | None:
        """Return the newest sample of a partition, None without one."""
        history = self._histories.get(partition)
        return None if history is None else history.latest

    def history(self, partition: TopicPartition) -> EndOffsetHistory | None:
        """Return a partition's history, None without one."""
        return self._histories.get(partition)

    def held(self) -> Iterator[tuple[TopicPartition, EndOffsetHistory]]:
        """Yield the partitions whose last stable offset an open transaction holds back."""
        columns = self.columns
        for topic, rows in self._rows.items():
            numbers = list(rows)
            held = columns.held_ms[list(rows.values())] != NOT_HELD_MS
            for index in np.flatnonzero(held).tolist():
                partition = TopicPartition(topic, numbers[index])
                yield partition, self._histories[partition]

    def bounds(
        self, partition: TopicPartition, before_ms: int, after_ms: int
    ) -> tuple[int, int] | None:
        """Return bounds of the log end offset at some time between two, by the samples around.

        A partition first seen after ``before_ms`` counts from 0: it was empty or did not exist.
        None without a sample since ``after_ms``.
        """
        history = self._histories.get(partition)
        if history is None:
            return None
        high = history.at_or_after(after_ms)
        if high is None:
            return None
        return history.at_or_before(before_ms) or 0, high

    def of_topics(self, wanted: Callable[[str], bool]) -> EndOffsetTable:
        """Return a copy of the table for some topics, which another thread may read."""
        table = EndOffsetTable()
        for topic, rows in self._rows.items():
            if wanted(topic):
                for number in rows:
                    partition = TopicPartition(topic, number)
                    table._add(partition, self._histories[partition].copy())
        return table

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions, in the order in which they were added."""
        return list(self._histories)

    def partition_count(self, topic: str) -> int:
        """Return how many partitions of a topic have a sample."""
        return len(self._rows.get(topic, ()))

    def partition_counts(self) -> dict[str, int]:
        """Return each topic's number of partitions with a sample."""
        return {topic: len(found) for topic, found in self._rows.items()}

    def __iter__(self) -> Iterator[tuple[TopicPartition, EndOffsets]]:
        for partition, history in self._histories.items():
            yield partition, history.latest

    def __len__(self) -> int:
        return len(self._histories)


def _offsets(sample: EndOffsets) -> tuple[int, int, int, int | None]:
    """Return a sample without its time."""
    start, stable = sample.start_offset, sample.last_stable_offset
    return start, stable, sample.end_offset, sample.readable_end_offset


def _is_held(sample: EndOffsets) -> bool:
    return sample.last_stable_offset < sample.end_offset


def _readable_end(sample: EndOffsets) -> int:
    readable = sample.readable_end_offset
    return sample.last_stable_offset if readable is None else readable
