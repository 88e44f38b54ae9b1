"""End offsets as they were seen over time, so that a past moment can be bounded.

A leader decides with the end offsets that it lists at that moment, and nobody publishes them.
But end offsets only grow, so the sample before and the sample after the decision bound them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from caughtup.models.ids import TopicPartition
from caughtup.models.lag import EndOffsets

#: Samples kept for a partition. Equal neighbours are folded, so an idle partition costs two.
SAMPLES_KEPT = 240


class EndOffsetHistory:
    """The samples of one partition, oldest first."""

    __slots__ = ("_end", "_first_ms", "_last_ms", "latest")

    def __init__(self, first: EndOffsets) -> None:
        self.latest = first
        self._end = [first.end_offset]
        self._first_ms = [first.as_of_ms]
        self._last_ms = [first.as_of_ms]

    def add(self, sample: EndOffsets) -> None:
        """Take a sample. A log that went backwards was recreated: its history starts again."""
        if sample.as_of_ms < self._last_ms[-1]:
            return
        self.latest = sample
        if sample.end_offset < self._end[-1]:
            del self._end[:], self._first_ms[:], self._last_ms[:]
        if self._end and sample.end_offset == self._end[-1]:
            self._last_ms[-1] = sample.as_of_ms
            return
        self._end.append(sample.end_offset)
        self._first_ms.append(sample.as_of_ms)
        self._last_ms.append(sample.as_of_ms)
        if len(self._end) > SAMPLES_KEPT:
            del self._end[0], self._first_ms[0], self._last_ms[0]

    def at_or_before(self, moment_ms: int) -> int | None:
        """Give the log end offset last seen at or before a moment; None if it was not seen yet."""
        index = bisect_right(self._first_ms, moment_ms)
        return self._end[index - 1] if index else None

    def at_or_after(self, moment_ms: int) -> int | None:
        """Give the log end offset first seen at or after a moment; None if not seen since."""
        index = bisect_right(self._last_ms, moment_ms - 1)
        return self._end[index] if index < len(self._end) else None


class EndOffsetTable:
    """Every partition's end offsets: the latest, and enough of the past to bound a decision."""

    def __init__(self) -> None:
        self._histories: dict[TopicPartition, EndOffsetHistory] = {}
        self._partitions: dict[str, set[int]] = {}

    def apply(self, partition: TopicPartition, sample: EndOffsets | None) -> None:
        """Take a sample, or None when the partition is gone."""
        if sample is None:
            if self._histories.pop(partition, None) is not None:
                partitions = self._partitions[partition.topic]
                partitions.discard(partition.partition)
                if not partitions:
                    del self._partitions[partition.topic]
            return
        history = self._histories.get(partition)
        if history is None:
            self._histories[partition] = EndOffsetHistory(sample)
            self._partitions.setdefault(partition.topic, set()).add(partition.partition)
        else:
            history.add(sample)

    def latest(self, partition: TopicPartition) -> EndOffsets | None:
        """Give the newest sample of a partition, None if there is none."""
        history = self._histories.get(partition)
        return None if history is None else history.latest

    def bounds(
        self, partition: TopicPartition, before_ms: int, after_ms: int
    ) -> tuple[int, int] | None:
        """Bound a log end offset of some moment between two, by the samples around them.

        A partition first seen after ``before_ms`` counts from 0: it was empty or did not exist.
        None when no sample of it was taken since ``after_ms``.
        """
        history = self._histories.get(partition)
        if history is None:
            return None
        high = history.at_or_after(after_ms)
        if high is None:
            return None
        return history.at_or_before(before_ms) or 0, high

    def partition_counts(self) -> dict[str, int]:
        """Give the number of partitions seen of each topic."""
        return {topic: len(found) for topic, found in self._partitions.items()}

    def __iter__(self) -> Iterator[tuple[TopicPartition, EndOffsets]]:
        for partition, history in self._histories.items():
            yield partition, history.latest

    def __len__(self) -> int:
        return len(self._histories)
