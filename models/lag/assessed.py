"""The assessment of one partition of a group, and for how long it holds."""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

from caughtup.models.durations import same_text_seconds
from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offsets import EndOffsetHistory
from caughtup.models.lag.figures import LagFigures
from caughtup.models.lag.rates import INTERVALS_ALLOWED
from caughtup.models.lag.verdict import NOTHING_TO_READ, Verdict, grown, holds_seconds


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
#: After the fields of an ``Assessed``: since when (ms) its oldest record is unread, and since when
#: what its reason tells lasts; until when (ms) only these times grow if nothing happens; and what else
#: changes it, besides commits and samples of its own partition.
SINCE_MS, TOLD_MS, UNTIL_MS, DEPENDS = range(len(Assessed._fields), len(Assessed._fields) + 4)
#: It depends on nothing else; on the group's other partitions, since it has no interval of its own;
#: on samples that only repeat the one before them, as a rate does that falls with time.
ON_OTHERS, ON_REPEATS = 1, 2

#: An assessment is made again so much earlier: its end is computed in floats.
_ALLOWANCE_MS = 1
#: The fields of an ``Assessed``, with the text of a ``GrowingReason`` as its reason, and the others, as a
#: plain tuple: the garbage collector stops tracking tuples of plain values, so it doesn't traverse
#: them each time.
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
    age, rates, growing = figures.age, figures.rates, verdict.growing
    depends = ON_OTHERS if on_others else 0
    if not _is_settled(figures, commits, ends):
        depends |= ON_REPEATS
    since_ms = None if age is None else _since_ms(age.seconds, now_ms)
    told_ms = None
    if growing is not None:
        is_age = age is not None and growing.seconds == age.seconds
        told_ms = since_ms if is_age else _since_ms(growing.seconds, now_ms)
    return (
        verdict.verdict,
        sys.intern(verdict.reason if growing is None else growing.text),  # many fare alike
        None if age is None else age.seconds,
        None if age is None else age.error_seconds,
        None if age is None else age.method,
        None if rates is None else rates.velocity,
        figures.eta_seconds,
        since_ms,
        told_ms,
        now_ms + 1000 * holds_seconds(figures) - _ALLOWANCE_MS,
        depends,
    )


def _since_ms(seconds: float, now_ms: int) -> float:
    """Return when a time (s) began, in ms; exactly, if it is of whole milliseconds."""
    return round(now_ms - seconds * 1000, 3)


def age_at(kept: Kept, now_ms: int) -> float | None:
    """Return the age of a partition's oldest unread record (s), None if it is unknown."""
    seconds: float | None = kept[LAG_SECONDS]
    return seconds and (now_ms - kept[SINCE_MS]) / 1000


def reason_at(kept: Kept, now_ms: int) -> str:
    """Return the reason of a kept assessment, with the time in it that has grown."""
    text, told_ms = kept[1], kept[TOLD_MS]
    return text if told_ms is None else grown(text, (now_ms - told_ms) / 1000)


def retold_at(kept: Kept, now_ms: int) -> float:
    """Return until when (ms) the reason of a kept assessment stays as it is, infinity for ever."""
    told_ms = kept[TOLD_MS]
    if told_ms is None:
        return math.inf
    return now_ms + 1000 * same_text_seconds((now_ms - told_ms) / 1000) - _ALLOWANCE_MS


def assessed_at(kept: Kept, now_ms: int) -> Assessed:
    """Return a kept assessment with the times that it has at ``now_ms``."""
    verdict, _, _, *figures = kept[:SINCE_MS]
    return Assessed(verdict, reason_at(kept, now_ms), age_at(kept, now_ms), *figures)


def verdict_at(kept: Kept, now_ms: int) -> Verdict:
    """Return the verdict of a kept assessment."""
    return Verdict(kept[0], reason_at(kept, now_ms), age_at(kept, now_ms) or 0.0)


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
