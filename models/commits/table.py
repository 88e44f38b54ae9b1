"""The committed offsets of every group, small enough for millions of group-partitions.

The last commits are in columns; the steps before them are kept only if a group has made any since
the service started. tests/models/commits/test_memory.py checks the memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, KeysView, Mapping
from typing import NamedTuple

import numpy as np

from caughtup.models.commits.columns import NO_SLOT, NO_WAIT, CommitTableColumns, TopicIds
from caughtup.models.commits.row_index import NO_HEAD, NO_ROW, RowIndex
from caughtup.models.commits.steps import StepBlocks
from caughtup.models.histories.commits import (
    ENOUGH_WAITS,
    FEWEST_WAITS,
    STEP_NUMBERS,
    CommitHistory,
)
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.column_reader import Ints, Rows
from caughtup.models.polls.commit_columns import NO_OFFSET


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


class GroupCommits(Mapping[TopicPartition, CommitHistory]):
    """A group's commits by now, topic by topic, its partitions in ascending order.

    Each access to a partition creates a new history, which later commits don't change.
    """

    __slots__ = ("_group", "_table")

    def __init__(self, table: CommitTable, group: str) -> None:
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


#: The partitions whose intervals are computed in one step: a few milliseconds' work.
_SOME = 1 << 14
#: Fewer intervals than this are computed faster one by one.
_FEW = 16
#: Partitions are close if at least one in this many numbers has a commit.
_CLOSE = 8


class CommitTable:
    """Each group's committed offsets, and their histories.

    caughtup.models.commits.applying and .past fill it; only they change ``columns``, ``row_index``,
    ``steps`` (those before the last one) and ``topic_ids``.
    """

    def __init__(self) -> None:
        self.columns = CommitTableColumns()
        self.row_index = RowIndex(self.columns)
        self.steps = StepBlocks()
        self.topic_ids = TopicIds()
        # Each partition's only object, by topic and number, which saves memory.
        self._partitions: dict[str, list[TopicPartition]] = {}
        # The number of changes so far, and its value at the last change of each group, and of all.
        self._changed: dict[str, int] = {}
        self._touched: dict[str, int] = {}
        self._changes = self._all_changed = 1

    def note(self, groups: Iterable[str], repeated: Iterable[str] = ()) -> None:
        """Record that commits of these groups changed, and which groups ``repeated`` an offset."""
        self._changes += 1
        there = self.row_index.groups()
        for group in repeated:
            if group in there:
                self._touched[group] = self._changes
        for group in groups:
            self._touched.pop(group, None)
            if group in there:
                self._changed[group] = self._changes
            else:
                self._changed.pop(group, None)

    def note_all(self) -> None:
        """Record that commits of any group may have changed."""
        self._changes += 1
        self._all_changed = self._changes
        self._changed.clear()
        self._touched.clear()

    @property
    def changes(self) -> int:
        """The number of changes so far."""
        return self._changes

    def changed_since(self, rows: Ints, changes: int) -> Rows:
        """Return which of these rows may have had a commit since ``self.changes`` was ``changes``."""
        if self._all_changed > changes:
            return np.ones(len(rows), np.bool_)
        return self.columns.changed[rows] > changes

    def touched(self, group: str) -> int:
        """Return a number that changes with each commit of the group, also one of the same offset."""
        return max(self.changed(group), self._touched.get(group, 0))

    def changed(self, group: str) -> int:
        """Return a number that changes when the group commits another offset.

        It also changes when a partition gets its first commit, or loses its commit; 0 for a group
        without commits.
        """
        if group not in self.row_index.groups():
            return 0
        return max(self._changed.get(group, 0), self._all_changed)

    def groups(self) -> KeysView[str]:
        """Return the groups that have commits."""
        return self.row_index.groups()

    def topics(self) -> KeysView[str]:
        """Return the topics on which there are commits."""
        return self.row_index.topics()

    def of(self, group: str) -> GroupCommits:
        """Return a group's partitions with their histories; empty for a group without commits."""
        return GroupCommits(self, group)

    def on(self, partition: TopicPartition) -> Iterator[int]:
        """Yield each group's committed offset of a partition, one after the other.

        Many groups may read a topic: the caller may stop, or go on after the table has changed.
        """
        heads = self.row_index.of_topic(partition.topic)
        for head in list(heads):
            row = self.row_index.row(head, partition.partition) if head in heads else NO_ROW
            if row != NO_ROW and self.columns.offset[row] != NO_OFFSET:
                yield int(self.columns.offset[row])

    def find(self, group: str, partition: TopicPartition) -> CommitHistory | None:
        """Return the history of a group on a partition; None without a commit."""
        topic, number = partition
        head = self.row_index.find(group, topic)
        row = NO_ROW if head == NO_HEAD else self.row_index.row(head, number)
        if row == NO_ROW or self.columns.offset[row] == NO_OFFSET:
            return None
        return self.history(row)

    def count(self, group: str) -> int:
        """Return the number of partitions on which a group has a commit."""
        return int(self.row_index.counts[self.row_index.of_group(group)].sum())

    def last(self, group: str) -> LastCommits:
        """Return a group's last commits, topic by topic, its partitions in ascending order."""
        found = LastCommits([], [], [])
        for topic, numbers, offset, commit_ms in self.columns_of(group):
            found.partitions.extend(self._partitions_of(topic, numbers.tolist()))
            found.offsets.extend(offset.tolist())
            found.times_ms.extend(commit_ms.tolist())
        return found

    def layout(self, group: str) -> int:
        """Return a number that stays the same as long as ``rows_of`` returns the same.

        Other offsets don't change it; 0 for a group without commits.
        """
        return self.row_index.layout(group)

    def rows_of(self, group: str) -> list[tuple[str, Ints, Ints]]:
        """Return the topics on which a group has commits: of each the partitions, and their rows.

        The rows are valid until ``layout`` returns another number.
        """
        row_index = self.row_index
        return [
            (row_index.topic(head), *self.committed_rows(head))
            for head in row_index.of_group(group)
        ]

    def columns_of(self, group: str) -> list[CommittedTopic]:
        """Return a group's last commits, one topic after the other."""
        offset, commit_ms = self.columns.offset, self.columns.commit_ms
        return [
            CommittedTopic(topic, numbers, offset[rows], commit_ms[rows])
            for topic, numbers, rows in self.rows_of(group)
        ]

    def named(self, topic: str, numbers: Ints) -> list[TopicPartition]:
        """Return the partitions of a topic with these numbers, which ascend; mostly the same objects."""
        return self._partitions_of(topic, numbers.tolist())

    def has_commit(self, group: str) -> Callable[[TopicPartition], bool]:
        """Return a test for the partitions on which a group has a commit, valid for now."""
        row_index, offset = self.row_index, self.columns.offset
        heads = {row_index.topic(head): head for head in row_index.of_group(group)}

        def test(partition: TopicPartition) -> bool:
            head = heads.get(partition.topic)
            row = NO_ROW if head is None else row_index.row(head, partition.partition)
            return row != NO_ROW and offset.item(row) != NO_OFFSET

        return test

    def interval_ms(self, group: str) -> int | None:
        """Return the longest interval (ms) between a group's commits, over its partitions.

        It is used for partitions without an interval of their own; None if no partition has one.
        """
        steps = self.interval_steps(group)
        try:
            while True:
                next(steps)
        except StopIteration as done:
            longest: int | None = done.value
            return longest

    def interval_steps(self, group: str) -> Generator[None, None, int | None]:
        """Compute ``interval_ms`` as a generator, some thousands of partitions a step."""
        longest = NO_WAIT
        for head in list(self.row_index.of_group(group)):
            reached = -1
            # It may have been removed between two steps.
            while head in self.row_index.of_group(group):
                numbers, rows = self.committed_rows(head)
                start = 0 if reached < 0 else int(np.searchsorted(numbers, reached, "right"))
                some = rows[start : start + _SOME]
                longest = max(
                    longest, self._longest_interval(some[self.columns.slot[some] != NO_SLOT])
                )
                if start + _SOME >= len(rows):
                    break
                reached = numbers.item(start + _SOME - 1)
                yield
        return None if longest == NO_WAIT else longest

    def _longest_interval(self, rows: Ints) -> int:
        """Return the longest ``CommitHistory.interval_ms`` in rows with more than one step."""
        if len(rows) < _FEW:
            found = [self.history(row).interval_ms for row in rows.tolist()]
            return max((known for known in found if known is not None), default=NO_WAIT)
        before = self.steps.waits(self.columns.slot[rows].astype(np.int64))
        waits = np.sort(np.column_stack((before, self.columns.wait_ms[rows])), axis=1)
        known = np.count_nonzero(waits != NO_WAIT, axis=1)
        intervals = np.where(known < ENOUGH_WAITS, waits[:, -1], waits[:, -2])
        return int(intervals.max(where=known >= FEWEST_WAITS, initial=NO_WAIT))

    def committed_rows(self, head: int) -> tuple[Ints, Ints]:
        """Return the partitions of a head that have a commit, ascending, and their rows."""
        numbers, rows = self.row_index.rows_of(head)
        there = self.columns.offset[rows] != NO_OFFSET
        return (numbers, rows) if there.all() else (numbers[there], rows[there])

    def history(self, row: int) -> CommitHistory:
        """Return the history in a row, which later commits don't change."""
        columns = self.columns
        slot = columns.slot.item(row)
        steps = array("q") if slot == NO_SLOT else self.steps.load(slot)
        steps.fromlist(
            [columns.offset.item(row), columns.step_ms.item(row), columns.wait_ms.item(row)]
        )
        return CommitHistory.of(
            steps,
            columns.commit_ms.item(row),
            self.topic_ids.find(columns.topic_id.item(row)),
            self.columns.rewound.get(row),
        )

    def keep(self, row: int, history: CommitHistory) -> None:
        """Store a history in a row, with as many steps as there is room for."""
        columns, steps = self.columns, history.steps
        columns.offset[row], columns.step_ms[row], columns.wait_ms[row] = steps[-STEP_NUMBERS:]
        columns.commit_ms[row] = history.commit_timestamp_ms
        columns.changed[row] = self._changes + 1  # by the time that they are noted
        columns.topic_id[row] = self.topic_ids.number(history.topic_id)
        slot = columns.slot.item(row)
        if len(steps) > STEP_NUMBERS:
            before = steps[:-STEP_NUMBERS]
            columns.slot[row] = self.steps.store(None if slot == NO_SLOT else slot, before)
        elif slot != NO_SLOT:
            self.steps.free(slot)
            columns.slot[row] = NO_SLOT
        columns.rewind(row, history.rewound_from)

    def forget_steps(self, rows: Ints) -> None:
        """Remove all steps of these rows but the last, and that they were rewound."""
        slots = self.columns.slot[rows]
        for slot in slots[slots != NO_SLOT].tolist():
            self.steps.free(slot)
        self.columns.slot[rows] = NO_SLOT
        self.columns.wait_ms[rows] = NO_WAIT
        for row in rows[self.columns.is_rewound[rows]].tolist():
            self.columns.rewind(row, None)

    def sweep(self, heads: list[bytes]) -> None:
        """Remove those of these heads that have no commit left, and all that only they used."""
        emptied = self.row_index.emptied(heads)
        if not emptied:
            return
        for topic in self.row_index.remove(emptied):
            self._partitions.pop(topic, None)
        self.topic_ids.sweep(self.columns, len(emptied))

    def forget_group(self, group: str) -> None:
        """Remove all commits of a group, and all that only they used."""
        heads = list(self.row_index.of_group(group))
        for head in heads:
            _, rows = self.committed_rows(head)
            self.forget_steps(rows)
            self.columns.offset[rows] = NO_OFFSET
            self.row_index.counts[head] = 0
        for topic in self.row_index.remove(heads):
            self._partitions.pop(topic, None)
        self.topic_ids.sweep(self.columns, len(heads))
        self.note([group])

    def _partitions_of(self, topic: str, numbers: list[int]) -> list[TopicPartition]:
        """Return partitions of a topic, each the same object every time if they are close."""
        known = self._partitions.setdefault(topic, [])
        most = numbers[-1] + 1 if numbers else 0
        if len(known) < most <= _CLOSE * len(numbers):
            known += [TopicPartition(topic, number) for number in range(len(known), most)]
        if most == len(numbers):
            return known[:most]
        return [
            known[number] if number < len(known) else TopicPartition(topic, number)
            for number in numbers
        ]

    def __iter__(self) -> Iterator[tuple[str, TopicPartition, CommitHistory]]:
        for group in sorted(self.groups()):
            for partition, history in sorted(self.of(group).items()):
                yield group, partition, history

    def __len__(self) -> int:
        return int(self.row_index.counts.sum())
