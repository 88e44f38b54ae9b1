"""Commits and looks at logs' ends to rows of lag, as whole columns: no step of Python for a row.

The same fold as ``caughtup.models.lag.partition_lag`` does for the service; tests hold both equal. A row is a
change that was observed, measured against what was so at the time: a group's commit moved, or the
partition's log did. Repetitions are remembered and make no row.

In which order things happened: records of one log in the log's order, whatever their clocks say,
since the log decides which commit is the last; a log's time never goes back. Between commits and
looks the time decides, and at the same time looks go first.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS
from caughtup.pipelines.history.buckets.end_offset_columns import (
    FROM_STATE,
    Believed,
    Flags,
    Ints,
    ends,
    running_max,
    starts,
)

_Side = Literal["left", "right"]
_LATE = 1 << 62
#: What key and time may take up together.
_WIDEST = 1 << 62


class Commits(NamedTuple):
    """Commits of groups on partitions, arrays of one length: offsets, and ms since the epoch.

    ``reader`` numbers the group on its partition, from 0; rows stand by it, and in the order of
    their log. ``place`` is the partition, as look_columns.of_partition has it. One that isn't
    ``present`` was deleted, and has no offset.
    """

    reader: Ints
    place: Ints
    present: Flags
    committed: Ints
    time_ms: Ints
    log_offset: Ints


class LagColumns(NamedTuple):
    """Rows of lag, arrays of one length, by reader and in the order in which they happened.

    ``commit`` and ``look`` are the rows of what each was measured by; ``by_commit`` tells which
    of the two it was that changed.
    """

    reader: Ints
    commit: Ints
    look: Ints
    by_commit: Flags
    as_of_ms: Ints
    lag: Ints
    lag_committed_view: Ints


def lag_columns(commits: Commits, found: Believed) -> LagColumns:
    """Return the rows that a batch makes. Its input includes the state of the one before."""
    at_ms = running_max(
        starts(commits.reader), np.where(commits.log_offset == FROM_STATE, -1, commits.time_ms)
    )
    moved, seen = _of_commits(commits, at_ms, found)
    grown, had = _of_looks(commits, at_ms, found)
    commit, look = np.concatenate((moved, had)), np.concatenate((seen, grown))
    by_commit = np.arange(len(commit)) < len(moved)
    # Stable: what a commit changed goes before what looks did after it, and those stay in order.
    order = np.argsort(commit, kind="stable")
    commit, look, by_commit = commit[order], look[order], by_commit[order]
    return _measured(commits, found, commit, look, by_commit)


def last_commits(commits: Commits) -> Ints:
    """Return the rows that are each group's last commit on a partition, unless it was deleted."""
    return np.flatnonzero(ends(commits.reader) & commits.present)


def _of_commits(commits: Commits, at_ms: Ints, found: Believed) -> tuple[Ints, Ints]:
    """Find the commits that changed something, and the last look before each."""
    before = np.zeros(len(at_ms), np.bool_)
    before[1:] = commits.present[:-1] & ~starts(commits.reader)[1:]
    same = np.zeros(len(at_ms), np.bool_)
    same[1:] = commits.committed[1:] == commits.committed[:-1]
    moved = np.where(commits.present, ~(before & same), before)
    rows = np.flatnonzero(moved & (commits.log_offset != FROM_STATE))
    looks = found.looks
    look = _last_before(looks.place, found.at_ms, commits.place[rows], at_ms[rows], side="right")
    rows, look = rows[look >= 0], look[look >= 0]
    there = looks.present[look]
    return rows[there], look[there]


def _of_looks(commits: Commits, at_ms: Ints, found: Believed) -> tuple[Ints, Ints]:
    """Find the looks that changed something, once for each group that had a commit there."""
    looks = found.looks
    grown = np.flatnonzero(found.changed & looks.present & (looks.log_offset != FROM_STATE))
    readers = commits.place[starts(commits.reader)]
    of_place = np.argsort(readers, kind="stable")
    sorted_places = readers[of_place]
    begin = np.searchsorted(sorted_places, looks.place[grown], "left")
    count = np.searchsorted(sorted_places, looks.place[grown], "right") - begin
    look = np.repeat(grown, count)
    nth = np.arange(len(look)) - np.repeat(np.cumsum(count) - count, count)
    reader = of_place[np.repeat(begin, count) + nth]
    commit = _last_before(commits.reader, at_ms, reader, found.at_ms[look], side="left")
    look, commit = look[commit >= 0], commit[commit >= 0]
    had = commits.present[commit]
    return look[had], commit[had]


def _last_before(keys: Ints, times: Ints, wanted: Ints, until: Ints, *, side: _Side) -> Ints:
    """Find the last row of each wanted key up to a time, itself included if ``side`` is right.

    Rows are sorted by key and time. Where there is none the answer is -1.
    """
    if not len(keys):
        return np.full(len(wanted), -1)
    first = starts(keys)
    known, number = keys[first], np.cumsum(first) - 1
    nearest = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    times, until, width = _narrow(times, until, len(known))
    # Key and time in one number, which can be searched for.
    last = np.searchsorted(number * width + times, nearest * width + until, side) - 1
    return np.where((last >= 0) & (keys[last] == wanted), last, -1)


def _narrow(times: Ints, until: Ints, keys: int) -> tuple[Ints, Ints, int]:
    """Make times small, in the same order, so that they fit in one number with a key's."""
    if not len(until):
        return times, until, 1
    # Python's own numbers, which don't overflow.
    high = int(max(times.max(), until.max()))
    low = int(min(times.min(where=times >= 0, initial=_LATE), until.min()))
    if (high - low + 2) * keys >= _WIDEST:
        moments = np.unique(np.concatenate((times, until)))
        return np.searchsorted(moments, times), np.searchsorted(moments, until), len(moments)
    # What was remembered is 0.
    return np.where(times < 0, 0, times - low + 1), until - low + 1, high - low + 2


def _measured(
    commits: Commits, found: Believed, commit: Ints, look: Ints, by_commit: Flags
) -> LagColumns:
    """Lag by the rules of ``caughtup.models.lag.partition_lag.partition_lag``."""
    looks = found.looks
    present, committed = commits.present[commit], commits.committed[commit]
    made_ms, as_of_ms = commits.time_ms[commit], looks.as_of_ms[look]
    start, end = looks.start_offset[look], looks.end_offset[look]
    stale = (committed > end) & (made_ms + CLOCK_ALLOWANCE_MS < as_of_ms)
    position = np.where(present & ~stale & (committed >= start), committed, start)
    readable = looks.readable_end_offset[look]
    readable = np.where(readable < 0, looks.last_stable_offset[look], readable)
    return LagColumns(
        commits.reader[commit],
        commit,
        look,
        by_commit,
        np.maximum(as_of_ms, made_ms),
        np.maximum(readable - position, 0),
        np.maximum(end - position, 0),
    )
