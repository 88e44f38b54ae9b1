"""A group's rates on a partition, and what follows: velocity, time to catch up, retention used."""

from __future__ import annotations

import math
from typing import NamedTuple

from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offsets import EndOffsetHistory
from caughtup.models.offsets import EndOffsets

#: Rates are measured over the last minute, or over four of the group's commit intervals if those
#: are longer: over less than a few commits, the rate would depend on when the commits happen.
RATE_SPAN_MS = 60_000
INTERVALS_A_SPAN = 4
#: The shortest time (ms) over which a rate of producers alone says something.
LEAST_SPAN_MS = 5_000
#: Commit intervals that may pass before a group counts as late. Just before a commit, the oldest
#: unread record is up to two intervals old: it arrived while the records of the last commit were
#: read, and belongs to the next.
INTERVALS_ALLOWED = 3


class GroupRates(NamedTuple):
    """The rates of a group and of the partition's producers over one span, in offsets a second."""

    consume_rate: float
    produce_rate: float
    span_seconds: float

    @property
    def velocity(self) -> float:
        """The change of the lag, in offsets a second; below 0 while the group catches up."""
        return self.produce_rate - self.consume_rate

    @property
    def growth(self) -> float:
        """The growth of the lag over the span, in offsets."""
        return self.velocity * self.span_seconds


def group_rates(
    commits: CommitHistory,
    end_offsets: EndOffsetHistory,
    now_ms: int,
    interval_ms: int,
    whole: bool = False,
) -> GroupRates | None:
    """Return both rates over the same span; None if the histories overlap for too short a time.

    The span ends with the last advance of the commit, because positions after it are unknown; but
    if the next advance is overdue by ``interval_ms``, the group's commit interval, the span ends
    with the last sample of the log end offset, so that the rate of a stopped group falls to 0. The
    span begins a minute or some intervals earlier, but not before the group resumed, if it had stopped; with
    ``whole``, it begins with the histories. Positions between commits and log end offsets between
    samples are interpolated.
    """
    overdue_ms = INTERVALS_ALLOWED * interval_ms
    to_ms = end_offsets.last_ms
    if now_ms - commits.step_ms <= overdue_ms:
        to_ms = min(to_ms, commits.step_ms)
    from_ms = max(commits.first_ms, end_offsets.first_ms)
    if not whole:
        span_ms = max(RATE_SPAN_MS, INTERVALS_A_SPAN * interval_ms)
        from_ms = max(from_ms, to_ms - span_ms, commits.resumed_ms(overdue_ms) or 0)
    if to_ms - from_ms < max(1, interval_ms):
        return None
    start, end = end_offsets.readable_end_at(from_ms), end_offsets.readable_end_at(to_ms)
    was_at, is_at = commits.position_at(from_ms), commits.position_at(to_ms)
    if start is None or end is None or was_at is None or is_at is None:
        return None
    seconds = (to_ms - from_ms) / 1000
    # Interpolation would move a group that waited at the log end towards its next commit.
    was_at = min(was_at, max(start, commits.first_offset))
    return GroupRates((is_at - was_at) / seconds, (end - start) / seconds, seconds)


def produce_rate(end_offsets: EndOffsetHistory) -> float | None:
    """Return how fast a partition's log grew over the last minute, in offsets a second.

    None unless samples of the log end offset are at least ``LEAST_SPAN_MS`` apart.
    """
    to_ms = end_offsets.last_ms
    from_ms = max(end_offsets.first_ms, to_ms - RATE_SPAN_MS)
    if to_ms - from_ms < LEAST_SPAN_MS:
        return None
    start, end = end_offsets.readable_end_at(from_ms), end_offsets.readable_end_at(to_ms)
    return None if start is None or end is None else (end - start) * 1000 / (to_ms - from_ms)


def eta_seconds(lag: int, rates: GroupRates | None) -> float | None:
    """Return the seconds until a group has caught up if both rates stay the same.

    0 without lag; infinity if the lag doesn't shrink; None if the rates are unknown. This is an
    estimate without an error bound.
    """
    if lag <= 0:
        return 0.0
    if rates is None:
        return None
    return lag / -rates.velocity if rates.velocity < 0 else math.inf


def retention_used(committed: int, ends: EndOffsets) -> float:
    """Return the share of the log after the commit, from 0 (at its end) to 1 (at its start).

    This is 1 - (committed - start) / (end - start), in offsets. Above 1, records were deleted
    unread. For an empty log it is 1 if records were deleted unread, else 0. A commit beyond the
    sampled log end counts as at the end.
    """
    size = ends.end_offset - ends.start_offset
    if size <= 0:
        return 1.0 if committed < ends.start_offset else 0.0
    return max(0.0, (ends.end_offset - committed) / size)


def records_lost(committed: int, ends: EndOffsets) -> int:
    """Return the number of offsets from the commit to the log start: those deleted unread."""
    return max(0, ends.start_offset - committed)
