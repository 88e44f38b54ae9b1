"""The row of each group, topic and partition, looked up for a whole poll at once.

The rows of a group's partitions of one topic are adjacent, in a block that grows with them; a
*head* is the start of their keys: the group and the topic. Partitions with scattered numbers have
single rows, so that a made-up number costs only one row.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView
from functools import lru_cache

import numpy as np

from caughtup.models.commits.columns import CommitTableColumns
from caughtup.models.polls.column_reader import Ints
from caughtup.models.polls.commit_columns import CURRENT_TYPE, CommitColumns
from caughtup.models.wire.consumer_offsets import head_names

NO_ROW = -1
NO_HEAD = -1
#: The most rows of a block for each partition that was seen.
_ROWS_A_PARTITION = 16
_FEWEST_HEADS = 1 << 8
#: More bits than a partition's number has.
PARTITION_BITS = 30


class RowIndex:
    """Rows by head and partition.

    ``counts`` (int64, by head) is the number of rows that have a commit, as callers ``count`` them.
    """

    def __init__(self, columns: CommitTableColumns) -> None:
        self._columns = columns
        self._numbers: dict[bytes, int] = {}
        #: The topic of each head, by number; ``_of_topic`` has its group.
        self._topics: list[str] = []
        self._of_group: dict[str, list[int]] = {}
        self._of_topic: dict[str, dict[int, str]] = {}
        #: The first row of each head's block, and how many it has.
        self._first = np.zeros(_FEWEST_HEADS, np.int64)
        self._sizes = np.zeros(_FEWEST_HEADS, np.int64)
        self.counts = np.zeros(_FEWEST_HEADS, np.int64)
        #: The number of the last change of each head's rows, among those of all.
        self._laid = np.zeros(_FEWEST_HEADS, np.int64)
        self._changes = 0
        self._single_rows: dict[int, dict[int, int]] = {}
        self._free_heads: list[int] = []
        self._free_blocks: dict[int, list[int]] = {}

    def find(self, group: str, topic: str) -> int:
        """Return the number of the head of a group and a topic; NO_HEAD without one."""
        try:
            return self._numbers.get(head_of(group, topic), NO_HEAD)
        except (OverflowError, UnicodeEncodeError):  # no record can have such names
            return NO_HEAD

    def add(self, head: bytes) -> int:
        """Return the number of a head, a new one if it has none."""
        number = self._numbers.get(head)
        if number is not None:
            return number
        group, topic = names_of(head)
        if self._free_heads:
            number = self._free_heads.pop()
            self._topics[number] = topic
        else:
            number = len(self._topics)
            self._topics.append(topic)
            if number == len(self.counts):
                self._first, self._sizes, self.counts, self._laid = (
                    np.concatenate((column, np.zeros_like(column)))
                    for column in (self._first, self._sizes, self.counts, self._laid)
                )
        self._numbers[head] = number
        self._of_group.setdefault(group, []).append(number)
        self._of_topic.setdefault(topic, {})[number] = group
        return number

    def emptied(self, heads: list[bytes]) -> list[int]:
        """Return the numbers of those of these heads that are known and whose count is 0."""
        numbers = np.array([self._numbers.get(head, NO_HEAD) for head in heads], np.int64)
        numbers = numbers[numbers != NO_HEAD]
        emptied: list[int] = np.unique(numbers[self.counts[numbers] == 0]).tolist()
        return emptied

    def remove(self, heads: Iterable[int]) -> list[str]:
        """Remove heads without commits; return the topics that have no head any more."""
        gone = set(heads)
        groups, left_topics = set(), []
        for number in sorted(gone):
            topic = self._topics[number]
            topics = self._of_topic[topic]
            group = topics.pop(number)
            groups.add(group)
            del self._numbers[head_of(group, topic)]
            if not topics:
                del self._of_topic[topic]
                left_topics.append(topic)
            self._free_block(int(self._first[number]), int(self._sizes[number]))
            for row in self._single_rows.pop(number, {}).values():
                self._free_block(row, 1)
            self._sizes[number] = 0
            self._topics[number] = ""
            self._free_heads.append(number)
        for group in groups:
            left = [number for number in self._of_group[group] if number not in gone]
            if left:
                self._of_group[group] = left
                self._relaid(left)
            else:
                del self._of_group[group]
        return left_topics

    def count(self, heads: Ints | int, change: int) -> None:
        """Count rows of these heads that got their first commit (1) or lost their commit (-1)."""
        np.add.at(self.counts, heads, change)
        self._relaid(heads)

    def layout(self, group: str) -> int:
        """Return a number that changes when other rows of a group have a commit, or when rows move.

        0 for a group without heads.
        """
        return max(map(self._laid.item, self._of_group.get(group, ())), default=0)

    def _relaid(self, heads: Ints | list[int] | int) -> None:
        self._changes += 1
        self._laid[heads] = self._changes

    def row(self, head: int, partition: int) -> int:
        """Return the row of a partition; NO_ROW without one."""
        if partition < self._sizes[head]:
            return int(self._first[head]) + partition
        return self._single_rows.get(head, {}).get(partition, NO_ROW)

    def add_row(self, head: int, partition: int) -> int:
        """Return the row of a partition, a new one if it has none."""
        row = self.row(head, partition)
        if row == NO_ROW:
            self._add_rows(np.array([head]), np.array([partition]))
            row = self.row(head, partition)
        return row

    def rows_of(self, head: int) -> tuple[Ints, Ints]:
        """Return the partitions of a head that have a row, ascending, and their rows (int64)."""
        size = int(self._sizes[head])
        partitions = np.arange(size)
        rows = partitions + self._first[head]
        apart = sorted(self._single_rows.get(head, {}).items())
        if apart:
            more = np.array(apart, np.int64)
            partitions = np.concatenate((partitions, more[:, 0]))
            rows = np.concatenate((rows, more[:, 1]))
        return partitions, rows

    def rows(self, commits: CommitColumns, added: Ints) -> tuple[Ints, Ints]:
        """Return the row of each of many commits and its head's number (int64).

        ``added`` (int64) are the indices of commits that get a row if they have none. Others may
        have NO_ROW or NO_HEAD.
        """
        numbers = self._numbers
        known = np.array([numbers.get(head, NO_HEAD) for head in commits.heads], np.int64)
        to_add = np.zeros(len(known), np.bool_)
        to_add[commits.head[added]] = True
        for index in np.flatnonzero(to_add & (known == NO_HEAD)).tolist():
            known[index] = self.add(commits.heads[index])
        head = known[commits.head]
        apart = self._sizes[head] <= commits.partition
        if apart.any():
            lacking = added[apart[added]]
            if lacking.size:
                self._add_rows(head[lacking], commits.partition[lacking])
            apart = self._sizes[head] <= commits.partition
        rows = self._first[head] + commits.partition
        rows[apart | (head == NO_HEAD)] = NO_ROW
        for at in np.flatnonzero(apart & (head != NO_HEAD)).tolist():
            rows[at] = self.row(int(head[at]), int(commits.partition[at]))
        return rows, head

    def _add_rows(self, heads: Ints, partitions: Ints) -> None:
        """Add a row for each of these partitions: in its head's block, or a single one if scattered."""
        lacking = np.unique(heads << PARTITION_BITS | partitions)
        heads, partitions = lacking >> PARTITION_BITS, lacking & (1 << PARTITION_BITS) - 1
        starts = np.flatnonzero(np.diff(heads, prepend=NO_HEAD))
        ends = np.append(starts[1:], len(heads))
        seen = self.counts[heads[starts]] + ends - starts
        most = partitions[ends - 1]
        for head, start, end, count, greatest in zip(
            *(each.tolist() for each in (heads[starts], starts, ends, seen, most)), strict=True
        ):
            allowed = _ROWS_A_PARTITION * count
            if greatest < allowed and head not in self._single_rows:
                self._grow(head, 1 << greatest.bit_length())
            else:
                self._add_scattered(head, allowed, partitions[start:end].tolist())

    def _add_scattered(self, head: int, allowed: int, partitions: list[int]) -> None:
        apart = self._single_rows.get(head, {})
        fresh = [partition for partition in partitions if partition not in apart]
        inside = [partition for partition in (*apart, *fresh) if partition < allowed]
        if fresh and inside:
            grown = 1 << max(inside).bit_length()
            if grown > self._sizes[head]:
                self._grow(head, grown)
        for partition in fresh:
            if partition >= self._sizes[head]:
                self._single_rows.setdefault(head, {})[partition] = self._take(1)

    def _grow(self, head: int, size: int) -> None:
        first, before = int(self._first[head]), int(self._sizes[head])
        block = self._take(size)
        if before:
            self._columns.move(first, block, before)
            self._free_block(first, before)
        self._first[head], self._sizes[head] = block, size
        apart = self._single_rows.get(head, {})
        for partition in [one for one in apart if one < size]:
            row = apart.pop(partition)
            self._columns.move(row, block + partition, 1)
            self._free_block(row, 1)
        if not apart:
            self._single_rows.pop(head, None)
        self._relaid(head)

    def _take(self, size: int) -> int:
        free = self._free_blocks.get(size)
        return free.pop() if free else self._columns.add(size)

    def _free_block(self, first: int, size: int) -> None:
        if size:
            self._free_blocks.setdefault(size, []).append(first)

    def groups(self) -> KeysView[str]:
        """Return the groups that have a head."""
        return self._of_group.keys()

    def topics(self) -> KeysView[str]:
        """Return the topics that have a head."""
        return self._of_topic.keys()

    def of_group(self, group: str) -> list[int]:
        """Return the numbers of a group's heads, in the order in which they were added."""
        return self._of_group.get(group, [])

    def of_topic(self, topic: str) -> dict[int, str]:
        """Return the numbers of a topic's heads, each with its group."""
        return self._of_topic.get(topic, {})

    def topic(self, head: int) -> str:
        """Return the topic of a head."""
        return self._topics[head]

    def names(self, head: bytes) -> tuple[str, str]:
        """Return the group and the topic of a well-formed head, known or not."""
        number = self._numbers.get(head)
        if number is None:
            return names_of(head)
        topic = self._topics[number]
        return self._of_topic[topic][number], topic


def names_of(head: bytes) -> tuple[str, str]:
    """Return the group and the topic of a well-formed head."""
    names = head_names(head)
    assert names is not None
    return names


@lru_cache(maxsize=64)  # a group's partitions are looked up one after the other
def head_of(group: str, topic: str) -> bytes:
    """Return the start of the key of a committed offset: a group and a topic."""
    of_group, of_topic = group.encode(), topic.encode()
    return b"".join(
        (CURRENT_TYPE, len(of_group).to_bytes(2), of_group, len(of_topic).to_bytes(2), of_topic)
    )
