"""What every group committed, and which groups have commits on a topic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from caughtup.models.faults.isolation import Faults
from caughtup.models.groups.topic_names import TopicReaders
from caughtup.models.histories.end_offsets import EndOffsetTable
from caughtup.models.histories.group_partitions import GroupPartitions
from caughtup.models.ids import TopicPartition
from caughtup.models.wire.consumer_offsets import OffsetCommit, OffsetKey


class CommittedPartitions:
    """Keeps the commits of groups, and counts the partitions that each has on a topic.

    A commit that fails is forgotten and counted.
    """

    def __init__(self, histories: GroupPartitions, ends: EndOffsetTable, faults: Faults) -> None:
        self._histories = histories
        self._ends = ends
        self._faults = faults
        self._readers = TopicReaders()

    def apply(self, commits: Mapping[OffsetKey, OffsetCommit | None], now_ms: int) -> None:
        """Apply what was committed; None for a tombstone."""

        def forget(key: OffsetKey, error: Exception) -> None:
            self._faults.note("commits", key.group, error, now_ms)
            partition = TopicPartition(key.topic, key.partition)
            if self._histories.apply(key.group, partition, None, self._ends):
                self._readers.remove(key.topic, key.group)

        for key in self._histories.apply_all(commits, self._ends, forget, now_ms):
            change = self._readers.remove if commits[key] is None else self._readers.add
            change(key.topic, key.group)

    def topics(self) -> set[str]:
        """Name the topics on which there are commits."""
        return self._readers.topics()

    def on(self, partition: TopicPartition) -> Iterator[int]:
        """Yield what each group has committed of a partition, one after the other.

        Many groups may read a topic: the caller may stop, or go on when the state has changed.
        """
        for group in list(self._readers.groups(partition.topic)):
            commits = self._histories.of(group).get(partition)
            if commits is not None:
                yield commits.committed
