"""The lag of a whole group, and its partitions one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from caughtup.models.commits.table import CommitTable, LastCommits
from caughtup.models.groups.membership import Member, Membership
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.partition_lag import PartitionLag, lag_columns, partition_lag
from caughtup.models.offsets import EndOffsets, sum_offsets
from caughtup.models.polls.column_reader import Ints, Rows


class TopicLag(NamedTuple):
    """A group's commits on a topic, their times (ms), log end offsets and lags, by partition.

    ``lag`` and ``end`` are valid where ``known``.
    """

    topic: str
    numbers: Ints
    offset: Ints
    commit_ms: Ints
    end: Ints
    known: Rows
    lag: Ints


class Positions(NamedTuple):
    """Sums (offsets) over the ``partitions`` with a commit and a known log end offset."""

    partitions: int
    committed: int
    end: int


class GroupLag(NamedTuple):
    """The number of partitions that a group committed or was assigned, and their total lag.

    ``known`` is the number of those whose log end offset is known. ``lag`` is the sum of all lags in
    offsets, None unless all are known; ``at_least`` is the sum of the known ones, None without any.
    Two ``positions`` over time give the group's rate.
    """

    partitions: int
    known: int
    lag: int | None
    at_least: int | None
    positions: Positions


def topic_lags(commits: CommitTable, group: str, ends: EndOffsetTable) -> Iterator[TopicLag]:
    """Yield a group's lags on each topic on which it has committed."""
    for topic, numbers, offset, commit_ms in commits.columns_of(group):
        logs = ends.columns.of(ends.rows(topic, numbers))
        found = lag_columns(offset, commit_ms, logs)
        yield TopicLag(topic, numbers, offset, commit_ms, logs.end, found.known, found.lag)


def group_lag(
    commits: CommitTable,
    group: str,
    membership: Membership | None,
    ends: EndOffsetTable,
    topics: Iterable[TopicLag] | None = None,
) -> GroupLag:
    """Return a group's lag: the sum of ``partition_lag`` over its partitions.

    ``topics`` is the result of ``topic_lags``, if the caller has it already.
    """
    if topics is None:
        topics = topic_lags(commits, group, ends)
    partitions, known, lags = 0, 0, [0]
    committed, end = 0, 0
    for found in topics:
        partitions += len(found.numbers)
        known += int(np.count_nonzero(found.known))
        lags.append(sum(found.lag[found.known].tolist()))
        committed += sum(found.offset[found.known].tolist())  # sums may be beyond 64 bits
        end += sum(found.end[found.known].tolist())
    positions = Positions(known, committed, end)
    has_commit = commits.has_commit(group)
    for partition in () if membership is None else membership.owners:
        if not has_commit(partition):
            partitions += 1
            latest = ends.latest(partition)
            if latest is not None:
                known += 1
                lags.append(partition_lag(None, latest).lag)
    lag = sum_offsets(lags)
    whole, at_least = lag if known == partitions else None, lag if known else None
    return GroupLag(partitions, known, whole, at_least, positions)


class PartitionRow(NamedTuple):
    """A group's partition: its commit, its owner, the end offsets and the lag; None = unknown."""

    partition: TopicPartition
    committed: int | None
    ends: EndOffsets | None
    lag: PartitionLag | None
    member: Member | None


def partition_rows(
    commits: LastCommits,
    membership: Membership | None,
    ends: EndOffsetTable,
) -> Iterator[PartitionRow]:
    """Yield every partition that a group committed or was assigned, sorted, with its lag.

    A commit on a partition of a topic that no longer exists has no end offsets and no lag.
    """
    owners = {} if membership is None else membership.owners
    last = dict(
        zip(commits.partitions, zip(commits.offsets, commits.times_ms, strict=True), strict=True)
    )
    for partition in sorted(last.keys() | owners.keys()):
        committed, at_ms = last.get(partition, (None, None))
        end = ends.latest(partition)
        lag = None if end is None else partition_lag(committed, end, at_ms)
        yield PartitionRow(partition, committed, end, lag, owners.get(partition))
