"""Committed offsets of all groups in plain dictionaries, for comparison with the columnar table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Mapping
from types import MappingProxyType
from typing import NoReturn

from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.histories.end_offsets import EndOffsetHistory
from caughtup.models.ids import TopicPartition
from caughtup.models.wire.consumer_offsets import OffsetCommit, OffsetKey

_NONE: Mapping[TopicPartition, CommitHistory] = MappingProxyType({})

OnError = Callable[[OffsetKey, Exception], object]


def _raise(_: OffsetKey, error: Exception) -> NoReturn:
    raise error


class PlainCommits:
    """Group → partition → the history of its commits.

    Equal keys and topic ids share one object, however many groups have commits on a partition; each
    commit in the log would bring its own.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[TopicPartition, CommitHistory]] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._keys: dict[TopicPartition, TopicPartition] = {}
        #: The number of commits, and of those deleted since the last sweep.
        self._count = 0
        self._deleted = 0

    def put(self, group: str, partition: TopicPartition, history: CommitHistory) -> None:
        """Start with a known history."""
        self._groups.setdefault(group, {})[partition] = history
        self._count += 1

    def apply(
        self,
        group: str,
        partition: TopicPartition,
        commit: OffsetCommit | None,
        ends: EndOffsetTable,
        now_ms: int | None = None,
    ) -> bool:
        """Apply a commit, or None for a deleted one; a group without commits is removed.

        A commit with another topic id is on a recreated topic, so its history starts again. Returns
        whether the partition is new to the group, or gone.
        """
        if commit is None:
            return self._delete(group, partition)
        known = self.of(group).get(partition)
        topic_id = self._topic_id(partition.topic, commit.topic_id)
        if known is not None and known.topic_id is None:
            known.topic_id = topic_id
        if known is not None and topic_id in (None, known.topic_id):
            _add(known, commit, ends.history(partition), now_ms)
            return False
        history = CommitHistory(commit.offset, commit.commit_timestamp_ms, topic_id)
        key = self._key(partition)  # first: a group never shows without a commit
        self._groups.setdefault(group, {})[key] = history
        self._count += known is None
        return known is None

    def _delete(self, group: str, partition: TopicPartition) -> bool:
        table = self._groups.get(group, {})
        if table.pop(partition, None) is None:
            return False
        if not table:
            del self._groups[group]
        self._count -= 1
        self._deleted += 1
        if self._deleted > self._count:
            self._sweep()
        return True

    def _key(self, partition: TopicPartition) -> TopicPartition:
        """Return the shared object of equal partitions.

        Partitions without commits are swept out once as many commits were deleted as remain.
        """
        return self._keys.setdefault(partition, partition)

    def _sweep(self) -> None:
        self._keys = {key: key for table in self._groups.values() for key in table}
        topics = {key.topic for key in self._keys}
        self._topic_ids = {t: i for t, i in self._topic_ids.items() if t in topics}
        self._deleted = 0

    def _topic_id(self, topic: str, topic_id: bytes | None) -> bytes | None:
        """Return the shared object of equal topic ids."""
        known = self._topic_ids.get(topic)
        if topic_id is not None and known != topic_id:
            self._topic_ids[topic] = topic_id
            return topic_id
        return known if topic_id is not None else None

    def of(self, group: str) -> Mapping[TopicPartition, CommitHistory]:
        """Return a group's partitions with their histories; empty for a group without commits."""
        return self._groups.get(group, _NONE)

    def interval_ms(self, group: str) -> int | None:
        """Return the longest interval (ms) between a group's commits on a partition, or None.

        It stands in for partitions without an interval of their own.
        """
        intervals = [history.interval_ms for history in self.of(group).values()]
        return max((known for known in intervals if known is not None), default=None)

    def topics(self) -> set[str]:
        """Return the topics with commits."""
        return {partition.topic for table in self._groups.values() for partition in table}

    def groups(self) -> KeysView[str]:
        """Return the groups with commits."""
        return self._groups.keys()

    def __iter__(self) -> Iterator[tuple[str, TopicPartition, CommitHistory]]:
        for group in sorted(self._groups):
            for partition in sorted(self._groups[group]):
                yield group, partition, self._groups[group][partition]

    def __len__(self) -> int:
        return self._count


def _add(
    known: CommitHistory,
    commit: OffsetCommit,
    end_offsets: EndOffsetHistory | None,
    now_ms: int | None,
) -> None:
    """Add another commit of a group-partition, with the known end offsets of the partition."""
    unread_since_ms = None
    if end_offsets is not None and commit.offset > known.committed:
        unread, _ = end_offsets.around(known.committed)
        unread_since_ms = None if unread is None else unread.at_ms
    known.add(commit.offset, commit.commit_timestamp_ms, unread_since_ms, now_ms)
    if end_offsets is not None and known.rewound_from is not None:
        _, more = end_offsets.around(known.committed)
        if more is None:
            known.rewound_from = None  # the log is shorter: nothing to regain
