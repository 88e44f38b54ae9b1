"""The lag of a whole group: of all its partitions at once, by column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from caughtup.models.commits.table import CommitTable
from caughtup.models.groups.membership import Membership
from caughtup.models.histories.end_offsets import EndOffsetTable
from caughtup.models.lag.lag_columns import lag_columns
from caughtup.models.lag.partition_lag import partition_lag
from caughtup.models.offsets import sum_offsets
from caughtup.models.polls.column_reader import Ints, Rows


class TopicLag(NamedTuple):
    """What a group committed of a topic and when (ms), and where its logs end, by partition.

    ``lag`` and ``end`` mean something where the end is ``known``.
    """

    topic: str
    numbers: Ints
    offset: Ints
    commit_ms: Ints
    end: Ints
    known: Rows
    lag: Ints


class Positions(NamedTuple):
    """Sums (offsets) over the ``partitions`` that a group committed and whose end is known."""

    partitions: int
    committed: int
    end: int


class GroupLag(NamedTuple):
    """How many partitions a group committed or was assigned, and of how many the log's end is known.

    ``lag`` is the sum of their lags in offsets, None if the end of any isn't known; ``at_least``
    that of those whose ends are, None if there are none. ``positions``: where it is and where those
    logs end; how fast it reads is had from two of them.
    """

    partitions: int
    known: int
    lag: int | None
    at_least: int | None
    positions: Positions


def topic_lags(commits: CommitTable, group: str, ends: EndOffsetTable) -> Iterator[TopicLag]:
    """Compute a group's lag on each topic of which it committed anything."""
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
    """Compute a group's lag: the sum of what ``partition_lag`` says of each of its partitions.

    ``topics`` are those of ``topic_lags``, where they are known already.
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
