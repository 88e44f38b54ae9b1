"""Which of a group's partitions have lag, by columns: most of a cluster's have none."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import NamedTuple

import numpy as np

from caughtup.models.commits.table import CommitTable
from caughtup.models.histories.end_columns import NOT_HELD_MS
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS, lag_columns
from caughtup.models.polls.column_reader import Ints, Rows

#: A last stable offset that has stood still for less time (ms) is held back by a short transaction.
HELD_MS = 5_000
#: Partitions per step, by columns and one by one: about a millisecond's work.
_STEP = 20_000
SMALL_STEP = 1_000


class Before(NamedTuple):
    """The numbers of a table's changes, and of samples of ends, when a group was last looked at."""

    changes: int
    samples: int


class Found(NamedTuple):
    """The number of a group's committed partitions without lag, and the others.

    ``changed``: those of ``left`` with a commit or another log end since ``before``. ``held``: an
    open transaction holds back the last stable offset of one. ``beyond``: a commit is beyond a log
    end, which the next sample may find to be out of range. ``reads_uncommitted``: the group
    committed an offset beyond a last stable offset.
    """

    at_the_end: int
    left: list[TopicPartition]
    changed: set[TopicPartition]
    held: bool
    beyond: bool
    reads_uncommitted: bool


def partitions_with_lag(
    group: str,
    commits: CommitTable,
    ends: EndOffsetTable,
    before: Before | None,
    held_before_ms: int,
) -> Generator[object, None, Found]:
    """Return the partitions that have lag, or whose last stable offset has stood still for long.

    Without ``before``, none counts as changed.
    """
    at_the_end, left, changed = 0, list[TopicPartition](), set[TopicPartition]()
    any_held = beyond = reads_uncommitted = False
    for topic, numbers, offset, commit_ms, moved in _committed(group, commits, before):
        for start in range(0, len(numbers), _STEP):
            part = slice(start, start + _STEP)
            some = numbers[part]
            rows = ends.rows(topic, some)
            of_them = ends.columns.of(rows)
            lags = lag_columns(offset[part], commit_ms[part], of_them)
            done = lags.known & (lags.lag == 0) & ~lags.out_of_range
            beyond = beyond or bool((lags.known & (offset[part] > of_them.end)).any())
            held = lags.known & (of_them.held_ms != NOT_HELD_MS)
            if held.any():
                any_held = True
                reads_uncommitted = reads_uncommitted or _is_beyond_stable(
                    ends, topic, some[held], offset[part][held], commit_ms[part][held]
                )
                done &= of_them.held_ms > held_before_ms
            at_the_end += int(np.count_nonzero(done))
            lagging = np.flatnonzero(lags.known & ~done)
            if lagging.size:
                named = commits.named(topic, some[lagging])
                left += named
                if before is not None and moved is not None:
                    new = moved[part][lagging] | (
                        ends.columns.moved[rows[lagging]] > before.samples
                    )
                    changed.update([named[at] for at in np.flatnonzero(new).tolist()])
            yield topic
    return Found(at_the_end, left, changed, any_held, beyond, reads_uncommitted)


def _committed(
    group: str, commits: CommitTable, before: Before | None
) -> list[tuple[str, Ints, Ints, Ints, Rows | None]]:
    """Return a group's topics as of now, each with the columns of its commits and which are new."""
    offset, commit_ms = commits.columns.offset, commits.columns.commit_ms
    return [
        (
            topic,
            numbers,
            offset[rows],
            commit_ms[rows],
            None if before is None else commits.changed_since(rows, before.changes),
        )
        for topic, numbers, rows in commits.rows_of(group)
    ]


def _is_beyond_stable(
    ends: EndOffsetTable, topic: str, numbers: Ints, offset: Ints, commit_ms: Ints
) -> bool:
    """Return whether a group committed beyond a last stable offset that was listed after that."""
    for number, committed, at_ms in zip(
        numbers.tolist(), offset.tolist(), commit_ms.tolist(), strict=True
    ):
        latest = ends.latest(TopicPartition(topic, number))
        if (
            latest is not None
            and latest.last_stable_offset < committed <= latest.end_offset
            and at_ms + CLOCK_ALLOWANCE_MS < latest.as_of_ms
        ):
            return True
    return False


def partitions_without_commit(
    group: str,
    owned: Iterable[TopicPartition],
    commits: CommitTable,
    ends: EndOffsetTable,
    before: Before | None,
) -> Generator[object, None, tuple[list[TopicPartition], set[TopicPartition]]]:
    """Return the assigned partitions on which a group never committed, and which of them changed.

    Those whose log end moved or is no longer known. Without ``before``, none counts as changed.
    """
    found, changed = list[TopicPartition](), set[TopicPartition]()
    assigned = list(owned)
    for start in range(0, len(assigned), SMALL_STEP):
        has_commit = commits.has_commit(group)
        some = [one for one in assigned[start : start + SMALL_STEP] if not has_commit(one)]
        found += some
        if before is not None:
            changed.update(one for one in some if ends.moved_since(one, before.samples))
        yield start
    return found, changed
