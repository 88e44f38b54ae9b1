"""A group's committed partitions with their histories, created on access."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from caughtup.models.histories.commits import CommitHistory
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.column_reader import Ints


class LastCommits(NamedTuple):
    """The last commit on each of a group's partitions: lists of the same length.

    ``offsets``, and the time of each commit in ms since the epoch.
    """

    partitions: list[TopicPartition]
    offsets: list[int]
    times_ms: list[int]


class CommittedTopic(NamedTuple):
    """The last commit on each of a topic's partitions: arrays (int64) of the same length.

    ``partitions`` ascend; ``offset`` is the committed offset, ``commit_ms`` the time of the commit
    (ms since the epoch).
    """

    topic: str
    partitions: Ints
    offset: Ints
    commit_ms: Ints


class CommitLookup(Protocol):
    """The part of ``CommitTable`` that GroupCommits uses."""

    def find(self, group: str, partition: TopicPartition) -> CommitHistory | None:
        """Return the history of a group on a partition; None without a commit."""

    def last(self, group: str) -> LastCommits:
        """Return a group's last commits."""

    def count(self, group: str) -> int:
        """Return the number of partitions on which a group has a commit."""


class GroupCommits(Mapping[TopicPartition, CommitHistory]):
    """A group's commits by now, topic by topic, its partitions in ascending order.

    Each access to a partition creates a new history, which later commits don't change.
    """

    __slots__ = ("_group", "_table")

    def __init__(self, table: CommitLookup, group: str) -> None:
        self._table = table
        self._group = group

    def __getitem__(self, partition: TopicPartition) -> CommitHistory:
        history = self._table.find(self._group, partition)
        if history is None:
            raise KeyError(partition)
        return history

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._table.last(self._group).partitions)

    def __len__(self) -> int:
        return self._table.count(self._group)
