"""Compute rows of lag from commits and samples of end offsets, by whole columns.

The rules are those of ``caughtup.models.lag.partition_lag`` in the service; tests hold both equal.
A row is an observed change (a group's commit moved, or the partition's log grew), measured against
the last known other side. Repetitions make no row.

The order of events: records of one log are in the log's order, whatever their timestamps, since the
log decides which commit is the last; the time of a log never goes back. Between commits and samples
the time decides; at equal times samples come first.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: The log offset of rows that come from the state: before all rows of the batch.
FROM_STATE = -1
#: In ``of_partition``, the lower bits are the partition, the upper ones the topic's number.
_PARTITION_BITS = 32


class EndOffsetSamples(NamedTuple):
    """End offsets of partitions: arrays of one length, with offsets, and times in ms since 1970.

    ``place``: topic and partition as in ``of_partition``. ``readable_end_offset`` is -1 if unknown.
    A row that is not ``present`` means that the partition was gone at its record's time; its
    offsets mean nothing.
    """

    place: Ints
    present: Flags
    start_offset: Ints
    last_stable_offset: Ints
    end_offset: Ints
    readable_end_offset: Ints
    as_of_ms: Ints
    log_offset: Ints

    def rows(self, which: Ints | Flags) -> EndOffsetSamples:
        """Return the rows with these indices, in their order, or those that a mask selects."""
        return EndOffsetSamples._make(column[which] for column in self)


class ValidEndOffsets(NamedTuple):
    """The samples that count, sorted by partition and log offset.

    ``at_ms``: when each happened, never before an earlier sample's time; -1 for rows from the
    state. ``changed``: whether it differs from the sample before it.
    """

    samples: EndOffsetSamples
    at_ms: Ints
    changed: Flags


def of_partition(topic: Ints, partition: Ints) -> Ints:
    """Combine the numbers of topic and partition into one int64 by which rows can be sorted."""
    return topic << _PARTITION_BITS | partition & (1 << _PARTITION_BITS) - 1


def topic_and_partition(place: Ints) -> tuple[Ints, NDArray[np.int32]]:
    """Split the numbers of ``of_partition`` into topics' numbers and partitions."""
    return place >> _PARTITION_BITS, place.astype(np.int32)


def valid_end_offsets(samples: EndOffsetSamples) -> ValidEndOffsets:
    """Sort samples, and drop those with an older time than an earlier one of their partition.

    Such samples come from a slower second service. After a partition was gone the times start
    again, since its topic was deleted.
    """
    samples = samples.rows(np.lexsort((samples.log_offset, samples.place)))
    first = starts(samples.place)
    at_ms = running_max(first, np.where(samples.log_offset == FROM_STATE, -1, samples.as_of_ms))
    life = first | ~samples.present
    seen = np.where(samples.present, samples.as_of_ms, -1)
    counts = ~samples.present | (samples.as_of_ms >= running_max(life, seen))
    if not counts.all():
        samples, at_ms = samples.rows(counts), at_ms[counts]
    return ValidEndOffsets(samples, at_ms, starts(samples.place) | _differs(samples))


def last_end_offsets(end_offsets: ValidEndOffsets) -> EndOffsetSamples:
    """Return the last sample of each partition that exists."""
    return end_offsets.samples.rows(ends(end_offsets.samples.place) & end_offsets.samples.present)


def starts(sorted_keys: Ints) -> Flags:
    """Return a mask of the first row of each key."""
    first = np.ones(len(sorted_keys), np.bool_)
    np.not_equal(sorted_keys[1:], sorted_keys[:-1], out=first[1:])
    return first


def ends(sorted_keys: Ints) -> Flags:
    """Return a mask of the last row of each key."""
    last = np.ones(len(sorted_keys), np.bool_)
    np.not_equal(sorted_keys[1:], sorted_keys[:-1], out=last[:-1])
    return last


def running_max(first: Flags, values: Ints) -> Ints:
    """Return the running maximum of values, restarted at each ``first``."""
    if not (values[1:] < values[:-1])[~first[1:]].any():
        return values
    # Values with the number of the run in front: one pass over all rows is enough.
    low, run = values.min(), np.cumsum(first, dtype=np.int64)
    width = int(values.max()) - int(low) + 1
    if width * int(run[-1] + 1) < _WIDEST:
        run = run * width
        lifted: Ints = np.maximum.accumulate(values - low + run) - run + low
        return lifted
    distinct, rank = np.unique(values, return_inverse=True)
    run = run * len(distinct)
    largest: Ints = distinct[np.maximum.accumulate(run + rank) - run]
    return largest


def _differs(samples: EndOffsetSamples) -> Flags:
    differs = np.ones(len(samples.place), np.bool_)
    differs[1:] = samples.present[1:] != samples.present[:-1]
    for column in samples[2:6]:
        differs[1:] |= column[1:] != column[:-1]
    return differs


_Side = Literal["left", "right"]
_LATE = 1 << 62
#: The limit for key and time in one number.
_WIDEST = 1 << 62


class CommitRows(NamedTuple):
    """Commits of groups on partitions: arrays of one length, with offsets, and ms since 1970.

    ``reader``: the number of the group-partition, from 0; rows are sorted by it and by log offset.
    ``place``: topic and partition as in ``of_partition``. A row that is not ``present`` is a
    deletion, and has no offset.
    """

    reader: Ints
    place: Ints
    present: Flags
    committed: Ints
    time_ms: Ints
    log_offset: Ints

    def rows(self, which: Ints | slice) -> CommitRows:
        """Return the rows with these indices, in their order."""
        return CommitRows._make(column[which] for column in self)


class LagRows(NamedTuple):
    """Rows of lag: arrays of one length, sorted by reader and in the order of events.

    ``commit`` and ``sample``: the indices of the rows from which each is computed. ``by_commit``:
    whether the commit changed, or else the log.
    """

    reader: Ints
    commit: Ints
    sample: Ints
    by_commit: Flags
    as_of_ms: Ints
    lag: Ints
    lag_committed_view: Ints

    def rows(self, which: Ints | slice) -> LagRows:
        """Return the rows with these indices, in their order."""
        return LagRows._make(column[which] for column in self)


def lag_columns(commits: CommitRows, end_offsets: ValidEndOffsets) -> LagRows:
    """Return the rows of lag of a batch, from its rows and those of the state before it."""
    at_ms = running_max(
        starts(commits.reader), np.where(commits.log_offset == FROM_STATE, -1, commits.time_ms)
    )
    moved, seen = _by_commits(commits, at_ms, end_offsets)
    grown, had = _by_samples(commits, at_ms, end_offsets)
    commit, sample = np.concatenate((moved, had)), np.concatenate((seen, grown))
    by_commit = np.arange(len(commit)) < len(moved)
    # Stable: a commit's own row precedes those of the samples after it, which stay in order.
    order = np.argsort(commit, kind="stable")
    commit, sample, by_commit = commit[order], sample[order], by_commit[order]
    return _measured(commits, end_offsets, commit, sample, by_commit)


def last_commits(commits: CommitRows) -> Ints:
    """Return the indices of the last commits of group-partitions, without deleted ones."""
    return np.flatnonzero(ends(commits.reader) & commits.present)


def _by_commits(
    commits: CommitRows, at_ms: Ints, end_offsets: ValidEndOffsets
) -> tuple[Ints, Ints]:
    """Return the indices of commits that changed something, and of the last sample before each."""
    before = np.zeros(len(at_ms), np.bool_)
    before[1:] = commits.present[:-1] & ~starts(commits.reader)[1:]
    same = np.zeros(len(at_ms), np.bool_)
    same[1:] = commits.committed[1:] == commits.committed[:-1]
    moved = np.where(commits.present, ~(before & same), before)
    rows = np.flatnonzero(moved & (commits.log_offset != FROM_STATE))
    samples = end_offsets.samples
    sample = last_before(
        samples.place, end_offsets.at_ms, commits.place[rows], at_ms[rows], side="right"
    )
    rows, sample = rows[sample >= 0], sample[sample >= 0]
    there = samples.present[sample]
    return rows[there], sample[there]


def _by_samples(
    commits: CommitRows, at_ms: Ints, end_offsets: ValidEndOffsets
) -> tuple[Ints, Ints]:
    """Return the indices of changed samples, and of each group's last commit before it."""
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
    commit = last_before(commits.reader, at_ms, reader, end_offsets.at_ms[sample], side="left")
    sample, commit = sample[commit >= 0], commit[commit >= 0]
    had = commits.present[commit]
    return sample[had], commit[had]


def last_before(keys: Ints, times: Ints, wanted: Ints, until: Ints, *, side: _Side) -> Ints:
    """Return the index of the last row of each wanted key before a time, or -1 if there is none.

    Rows are sorted by key and time. With ``side`` right, a row at that time counts too.
    """
    if not len(keys):
        return np.full(len(wanted), -1)
    first = starts(keys)
    known, number = keys[first], np.cumsum(first) - 1
    # Wanted keys come in runs, each of which is searched for once.
    run = starts(wanted)
    nearest = np.minimum(np.searchsorted(known, wanted[run]), len(known) - 1)[np.cumsum(run) - 1]
    times, until, width = _narrow(times, until, len(known))
    # Combine key and time into one sorted number.
    last = np.searchsorted(number * width + times, nearest * width + until, side) - 1
    return np.where((last >= 0) & (keys[last] == wanted), last, -1)


def _narrow(times: Ints, until: Ints, keys: int) -> tuple[Ints, Ints, int]:
    """Map times to smaller numbers in the same order, to fit into one int64 with a key.

    Returns both arrays, and the number of distinct values that they may have.
    """
    if not len(until):
        return times, until, 1
    # Python's integers, which do not overflow.
    high = int(max(times.max(), until.max()))
    low = int(min(times.min(where=times >= 0, initial=_LATE), until.min()))
    if (high - low + 2) * keys >= _WIDEST:
        moments = np.unique(np.concatenate((times, until)))
        return np.searchsorted(moments, times), np.searchsorted(moments, until), len(moments)
    # Rows from the state become 0.
    return np.where(times < 0, 0, times - low + 1), until - low + 1, high - low + 2


def _measured(
    commits: CommitRows, end_offsets: ValidEndOffsets, commit: Ints, sample: Ints, by_commit: Flags
) -> LagRows:
    """Compute lag by the rules of ``caughtup.models.lag.partition_lag.partition_lag``."""
    samples = end_offsets.samples
    present, committed = commits.present[commit], commits.committed[commit]
    made_ms, as_of_ms = commits.time_ms[commit], samples.as_of_ms[sample]
    start, end = samples.start_offset[sample], samples.end_offset[sample]
    stale = (committed > end) & (made_ms + CLOCK_ALLOWANCE_MS < as_of_ms)
    position = np.where(present & ~stale & (committed >= start), committed, start)
    readable = samples.readable_end_offset[sample]
    readable = np.where(readable < 0, samples.last_stable_offset[sample], readable)
    return LagRows(
        commits.reader[commit],
        commit,
        sample,
        by_commit,
        np.maximum(as_of_ms, made_ms),
        np.maximum(readable - position, 0),
        np.maximum(end - position, 0),
    )
