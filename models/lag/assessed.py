"""The assessment of one partition of a group, and for how long it holds."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offsets import EndOffsetHistory
from caughtup.models.lag.figures import LagFigures
from caughtup.models.lag.rates import INTERVALS_ALLOWED
from caughtup.models.lag.verdict import NOTHING_TO_READ, Verdict, holds_seconds


class Assessed(NamedTuple):
    """The assessment of one partition of a group; None = unknown.

    ``lag_seconds`` is the age of the oldest unread record, ``error_seconds`` its greatest error and
    ``lag_seconds_method`` one of ``caught_up``, ``interpolated`` and ``at_least``. ``velocity`` is the growth
    of the lag in records a second. ``eta_seconds`` is the time until the group has caught up,
    inf = never. A ``PartitionLine`` has the figures of which it has a field.
    """

    verdict: str
    why: str
    lag_seconds: float | None
    error_seconds: float | None
    lag_seconds_method: str | None
    velocity: float | None
    eta_seconds: float | None


AT_THE_END = Assessed(*NOTHING_TO_READ[:2], 0.0, 0.0, "caught_up", None, 0.0)

#: The place of a figure in an ``Assessed``.
LAG_SECONDS = Assessed._fields.index("lag_seconds")
#: After the fields of an ``Assessed``: when it was made; until when (ms) only its age grows if
#: nothing happens; and what else changes it, besides commits and samples of its own partition.
AT_MS, UNTIL_MS, DEPENDS = range(len(Assessed._fields), len(Assessed._fields) + 3)
#: It depends on nothing else; on the group's other partitions, since it has no interval of its own;
#: on samples that only repeat the one before them, as a rate does that falls with time.
ON_OTHERS, ON_REPEATS = 1, 2

#: An assessment is made again so much earlier: its end is computed in floats.
_ALLOWANCE_MS = 1
#: The fields of an ``Assessed``, AT_MS, UNTIL_MS and DEPENDS, as a plain tuple: the garbage collector
#: stops tracking tuples of plain values, so it doesn't traverse them each time.
Kept = tuple[Any, ...]


def kept_of(
    verdict: Verdict,
    figures: LagFigures,
    commits: CommitHistory | None,
    ends: EndOffsetHistory,
    now_ms: int,
    *,
    on_others: bool,
) -> Kept:
    """Return an assessment that was made at ``now_ms``, as it is kept.

    ``on_others``: the partition has no interval of its own.
    """
    age, rates = figures.age, figures.rates
    depends = ON_OTHERS if on_others else 0
    if not _is_settled(figures, commits, ends):
        depends |= ON_REPEATS
    return (
        verdict.verdict,
        sys.intern(verdict.reason),  # many partitions fare alike
        None if age is None else age.seconds,
        None if age is None else age.error_seconds,
        None if age is None else age.method,
        None if rates is None else rates.velocity,
        figures.eta_seconds,
        now_ms,
        now_ms + 1000 * holds_seconds(verdict.verdict, figures) - _ALLOWANCE_MS,
        depends,
    )


def age_at(kept: Kept, now_ms: int) -> float | None:
    """Return the age of a partition's oldest unread record (s), None if it is unknown."""
    seconds: float | None = kept[LAG_SECONDS]
    return seconds and seconds + (now_ms - kept[AT_MS]) / 1000


def assessed_at(kept: Kept, now_ms: int) -> Assessed:
    """Return a kept assessment with the age that it has at ``now_ms``."""
    return Assessed._make(kept[:AT_MS])._replace(lag_seconds=age_at(kept, now_ms))


def verdict_at(kept: Kept, now_ms: int) -> Verdict:
    """Return the verdict of a kept assessment."""
    return Verdict(kept[0], kept[1], age_at(kept, now_ms) or 0.0)


def _is_settled(figures: LagFigures, commits: CommitHistory | None, ends: EndOffsetHistory) -> bool:
    """Return whether samples that repeat the last one leave a partition's rates as they are.

    Rates end with the last advance of the commit or, if the next one is overdue, with the last
    sample; but when both have fallen to 0, they stay there.
    """
    if commits is None or figures.interval_seconds is None or figures.lag.out_of_range:
        return True
    rates = figures.rates
    if rates is not None and not rates.consume_rate and not rates.produce_rate:
        return True
    allowed = INTERVALS_ALLOWED * figures.interval_seconds
    is_overdue = (figures.step_seconds or 0.0) > allowed
    return not is_overdue and commits.step_ms <= ends.last_ms
