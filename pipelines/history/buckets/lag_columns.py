"""Commits and samples of logs' ends to rows of lag, by whole columns: no step of Python for a row.

The same fold as ``caughtup.models.lag.partition_lag`` does for the service; tests hold both equal.
A row is a change that was observed, measured against what held at the time: a group's commit
moved, or the partition's log grew. Repetitions make no row.

In which order things happened: records of one log in the log's order, whatever their clocks say,
since the log decides which commit is the last; a log's time never goes back. Between commits and
samples the time decides, and at the same time samples go first.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS
from caughtup.pipelines.history.buckets.end_offset_columns import (
    FROM_STATE,
    Flags,
    Ints,
    ValidEndOffsets,
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
    their log. ``place`` is the partition, as end_offset_columns.of_partition has it. One that isn't
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

    ``commit`` and ``sample`` are the rows that each was computed from; ``by_commit``: the commit
    changed, not the log.
    """

    reader: Ints
    commit: Ints
    sample: Ints
    by_commit: Flags
    as_of_ms: Ints
    lag: Ints
    lag_committed_view: Ints


def lag_columns(commits: Commits, end_offsets: ValidEndOffsets) -> LagColumns:
    """Return the rows that a batch makes. Its input includes the state of the one before."""
    at_ms = running_max(
        starts(commits.reader), np.where(commits.log_offset == FROM_STATE, -1, commits.time_ms)
    )
    moved, seen = _by_commits(commits, at_ms, end_offsets)
    grown, had = _by_samples(commits, at_ms, end_offsets)
    commit, sample = np.concatenate((moved, had)), np.concatenate((seen, grown))
    by_commit = np.arange(len(commit)) < len(moved)
    # Stable: a commit's change goes before those of samples after it, which stay in order.
    order = np.argsort(commit, kind="stable")
    commit, sample, by_commit = commit[order], sample[order], by_commit[order]
    return _measured(commits, end_offsets, commit, sample, by_commit)


def last_commits(commits: Commits) -> Ints:
    """Return the rows that are each group's last commit on a partition, unless it was deleted."""
    return np.flatnonzero(ends(commits.reader) & commits.present)


def _by_commits(commits: Commits, at_ms: Ints, end_offsets: ValidEndOffsets) -> tuple[Ints, Ints]:
    """Find the commits that changed something, and the last sample before each."""
    before = np.zeros(len(at_ms), np.bool_)
    before[1:] = commits.present[:-1] & ~starts(commits.reader)[1:]
    same = np.zeros(len(at_ms), np.bool_)
    same[1:] = commits.committed[1:] == commits.committed[:-1]
    moved = np.where(commits.present, ~(before & same), before)
    rows = np.flatnonzero(moved & (commits.log_offset != FROM_STATE))
    samples = end_offsets.samples
    sample = _last_before(
        samples.place, end_offsets.at_ms, commits.place[rows], at_ms[rows], side="right"
    )
    rows, sample = rows[sample >= 0], sample[sample >= 0]
    there = samples.present[sample]
    return rows[there], sample[there]


def _by_samples(commits: Commits, at_ms: Ints, end_offsets: ValidEndOffsets) -> tuple[Ints, Ints]:
    """Find the samples that changed something, once for each group that had a commit there."""
    samples = end_offsets.samples
    grown = np.flatnonzero(
        end_offsets.changed & samples.present & (samples.log_offset != FROM_STATE)
    )
    readers = commits.place[starts(commits.reader)]
    of_place = np.argsort(readers, kind="stable")
    sorted_places = readers[of_place]
    begin = np.searchsorted(sorted_places, samples.place[grown], "left")
    count = np.searchsorted(sorted_places, samples.place[grown], "right") - begin
    sample = np.repeat(grown, count)
    nth = np.arange(len(sample)) - np.repeat(np.cumsum(count) - count, count)
    reader = of_place[np.repeat(begin, count) + nth]
    commit = _last_before(commits.reader, at_ms, reader, end_offsets.at_ms[sample], side="left")
    sample, commit = sample[commit >= 0], commit[commit >= 0]
    had = commits.present[commit]
    return sample[had], commit[had]


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
    # What comes from the state is 0.
    return np.where(times < 0, 0, times - low + 1), until - low + 1, high - low + 2


def _measured(
    commits: Commits, end_offsets: ValidEndOffsets, commit: Ints, sample: Ints, by_commit: Flags
) -> LagColumns:
    """Lag by the rules of ``caughtup.models.lag.partition_lag.partition_lag``."""
    samples = end_offsets.samples
    present, committed = commits.present[commit], commits.committed[commit]
    made_ms, as_of_ms = commits.time_ms[commit], samples.as_of_ms[sample]
    start, end = samples.start_offset[sample], samples.end_offset[sample]
    stale = (committed > end) & (made_ms + CLOCK_ALLOWANCE_MS < as_of_ms)
    position = np.where(present & ~stale & (committed >= start), committed, start)
    readable = samples.readable_end_offset[sample]
    readable = np.where(readable < 0, samples.last_stable_offset[sample], readable)
    return LagColumns(
        commits.reader[commit],
        commit,
        sample,
        by_commit,
        np.maximum(as_of_ms, made_ms),
        np.maximum(readable - position, 0),
        np.maximum(end - position, 0),
    )
