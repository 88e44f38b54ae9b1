"""How a group moves through a partition: rates, velocity, time to catch up, retention used."""

from __future__ import annotations

import math
from typing import NamedTuple

from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offsets import EndOffsetHistory
from caughtup.models.offsets import EndOffsets

#: Rates are taken from the last minute, or from four of the group's own intervals if those are
#: longer: a span that isn't a few commits long would show when commits come, not how fast.
RATE_SPAN_MS = 60_000
INTERVALS_A_SPAN = 4
#: A group that takes longer than this many of its own intervals for a step isn't in its rhythm.
#: Just before a commit, the oldest unread record is up to two of them old: it came while the
#: last commit's records were read, and is in the next one.
INTERVALS_ALLOWED = 3


class GroupRates(NamedTuple):
    """A group's and a producer's rates over one span, in offsets a second.

    ``span_seconds`` is the length of the span from which both were taken.
    """

    consume_rate: float
    produce_rate: float
    span_seconds: float

    @property
    def velocity(self) -> float:
        """The change of the lag, in offsets a second; below 0 while the group catches up."""
        return self.produce_rate - self.consume_rate

    @property
    def growth(self) -> float:
        """How much the lag grew over the span, in offsets."""
        return self.velocity * self.span_seconds


def group_rates(
    commits: CommitHistory,
    end_offsets: EndOffsetHistory,
    now_ms: int,
    interval_ms: int,
    whole: bool = False,
) -> GroupRates | None:
    """Compute both rates over the same span; None where the histories share too short a one.

    The span ends with the group's last step, since a position between two commits isn't known;
    but once a step is overdue by ``interval_ms`` (the group's own interval) it ends with the last
    sample of the log's end, so that a group which stopped has a rate that falls to 0. It begins a
    minute or some intervals earlier, but not before a group that had stopped went on; with
    ``whole``, where the histories begin. Positions between commits and ends between samples are
    interpolated.
    """
    overdue_ms = INTERVALS_ALLOWED * interval_ms
    to_ms = end_offsets.last_ms
    if now_ms - commits.step_ms <= overdue_ms:
        to_ms = min(to_ms, commits.step_ms)
    from_ms = max(commits.first_ms, end_offsets.first.at_ms)
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
    # A group that waited at the end was at the end, not on its way to its next commit.
    was_at = min(was_at, max(start, commits.first_offset))
    return GroupRates((is_at - was_at) / seconds, (end - start) / seconds, seconds)


def eta_seconds(lag: int, rates: GroupRates | None) -> float | None:
    """Compute in how many seconds a group has caught up if both rates stay what they are.

    0 for one that has; infinity for one that doesn't gain on the producer; None if that isn't
    known. It is as wrong as the rates are: an estimate, without a bound.
    """
    if lag <= 0:
        return 0.0
    if rates is None:
        return None
    return lag / -rates.velocity if rates.velocity < 0 else math.inf


def retention_used(committed: int, ends: EndOffsets) -> float:
    """Compute the share of the log after the commit, from 0 (at its end) to 1 (at its start).

    1 - (committed - start) / (end - start), by offsets and whatever deletes the log's start.
    Beyond 1, records were deleted unread. Of a log without records, 0 or 1: nothing was lost, or
    something was. A commit that is newer than the sample of the log's end counts as at the end.
    """
    size = ends.end_offset - ends.start_offset
    if size <= 0:
        return 1.0 if committed < ends.start_offset else 0.0
    return max(0.0, (ends.end_offset - committed) / size)


def records_lost(committed: int, ends: EndOffsets) -> int:
    """Count the offsets between a commit and a log start that has passed it: deleted unread."""
    return max(0, ends.start_offset - committed)
