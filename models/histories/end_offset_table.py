"""The end offsets of all partitions over time, and which changed since."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from caughtup.models.histories.end_columns import NOT_HELD_MS, UNKNOWN_ROW, EndColumns, TopicRows
from caughtup.models.histories.end_offsets import EndOffsetHistory
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.column_reader import Ints


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

    def moved_since(self, partition: TopicPartition, samples: int) -> bool:
        """Return whether a partition's log changed, or is gone, since ``self.samples`` was ``samples``."""
        row = self._rows.get(partition.topic, {}).get(partition.partition)
        return row is None or self.columns.moved.item(row) > samples

    def latest(self, partition: TopicPartition) -> EndOffsets | None:
        """Return the newest sample of a partition, None without one."""
        history = self._histories.get(partition)
        return None if history is None else history.latest

    def history(self, partition: TopicPartition) -> EndOffsetHistory | None:
        """Return a partition's history, None without one."""
        return self._histories.get(partition)

    def unread_since_ms(
        self, topics: list[str], partitions: list[int], offsets: list[int]
    ) -> list[int]:
        """Return when each log was last seen without a record at an offset (ms), 0 if it never was."""
        histories = self._histories
        found = []
        for topic, number, offset in zip(topics, partitions, offsets, strict=True):
            history = histories.get((topic, number))  # type: ignore[call-overload]  # as fast as can be
            found.append(0 if history is None else history.unread_at_ms(offset))
        return found

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

    def of_topic(self, topic: str) -> Iterator[tuple[TopicPartition, EndOffsets]]:
        """Yield a topic's partitions with their newest samples."""
        for number in self._rows.get(topic, ()):
            partition = TopicPartition(topic, number)
            yield partition, self._histories[partition].latest

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
