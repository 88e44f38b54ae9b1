"""A group's partitions, one by one: what it committed, who owns them, and its lag."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from caughtup.models.commits.group_commits import LastCommits
from caughtup.models.groups.membership import Member, Membership
from caughtup.models.histories.end_offsets import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.partition_lag import PartitionLag, partition_lag
from caughtup.models.offsets import EndOffsets


@dataclass(frozen=True, slots=True)
class PartitionRow:
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
