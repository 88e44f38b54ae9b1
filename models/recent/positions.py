"""Where a group is and where its logs end, each as a sum: how fast it reads is had from two of them."""

from __future__ import annotations

from typing import NamedTuple

from caughtup.models.commits.table import CommitTable
from caughtup.models.histories.end_columns import NEVER_MS
from caughtup.models.histories.end_offsets import EndOffsetTable


class Positions(NamedTuple):
    """Sums (offsets) over the ``partitions`` that a group committed and whose end is known."""

    partitions: int
    committed: int
    end: int


def group_positions(commits: CommitTable, group: str, ends: EndOffsetTable) -> Positions:
    """Sum up what a group committed and the ends of those logs."""
    partitions, committed, end = 0, 0, 0
    for topic, numbers, offset, _ in commits.columns_of(group):
        found = ends.columns.of(ends.rows(topic, numbers))
        known = found.as_of_ms != NEVER_MS
        partitions += int(known.sum())
        committed += sum(offset[known].tolist())  # sums may be beyond 64 bits
        end += sum(found.end[known].tolist())
    return Positions(partitions, committed, end)
