"""The lag of a whole group: of all its partitions at once, by column."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from caughtup.models.commits.table import CommitTable
from caughtup.models.groups.membership import Membership
from caughtup.models.histories.end_offsets import EndOffsetTable
from caughtup.models.lag.lag_columns import lag_columns
from caughtup.models.lag.partition_lag import partition_lag
from caughtup.models.offsets import sum_offsets


class GroupLag(NamedTuple):
    """How many partitions a group committed or was assigned, and of how many the log's end is known.

    ``lag`` is the sum of their lags in offsets, None if the end of any isn't known; ``at_least``
    that of those whose ends are, None if there are none.
    """

    partitions: int
    known: int
    lag: int | None
    at_least: int | None


def group_lag(
    commits: CommitTable, group: str, membership: Membership | None, ends: EndOffsetTable
) -> GroupLag:
    """Compute a group's lag: the sum of what ``partition_lag`` says of each of its partitions."""
    partitions, known, lags = 0, 0, [0]
    for topic, numbers, offset, commit_ms in commits.columns_of(group):
        found = lag_columns(offset, commit_ms, ends.columns.of(ends.rows(topic, numbers)))
        partitions += len(numbers)
        known += int(np.count_nonzero(found.known))
        lags.append(sum(found.lag[found.known].tolist()))
    has_commit = commits.has_commit(group)
    for partition in () if membership is None else membership.owners:
        if not has_commit(partition):
            partitions += 1
            latest = ends.latest(partition)
            if latest is not None:
                known += 1
                lags.append(partition_lag(None, latest).lag)
    lag = sum_offsets(lags)
    return GroupLag(partitions, known, lag if known == partitions else None, lag if known else None)
