"""The verdict on a copy that restores (warm-up, standby or active): one word and one sentence.

A copy is compared with itself: the *allowance* is three of its intervals between moves, and at
least three times the time between two observations, and 30 s. For a copy whose interval is unknown
it is the application's probing interval, after which Kafka itself checks again. The first line that
holds is the verdict:

==========  ===================================================================================
flapping    lost and rebuilt at least twice within the last ten generations
unknown     its lag was never reported, or it wasn't observed for longer than a probing interval
            and three times the usual time between observations
stranded    a caught-up warm-up without a rebalance to promote it: that is overdue by more than a
            minute, or none is scheduled
caught_up   its lag is certainly at most the limit: as observed, or by its rate since
waiting     its thread restores actives first
stalled     it has something to restore and didn't move for longer than the allowance
unknown     its rate is unknown
chasing     it moves, but certainly, and for longer than the allowance, at least as many offsets are
            written as it restores
warming     its lag shrinks: certainly, or as far as a few observations show
unknown     it isn't certain whether its lag shrinks
==========  ===================================================================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from caughtup.models.copies.figures import CopyFigures
from caughtup.models.copies.history import (
    FEWEST_POINTS,
    GENERATIONS_WATCHED,
    INTERVALS_ALLOWED,
    LEAST_ALLOWED_MS,
)
from caughtup.models.durations import counted, duration
from caughtup.models.histories.trend import Eta
from caughtup.models.ids import CopyKey, TaskId

#: A copy is flapping if it was rebuilt this often within ``GENERATIONS_WATCHED``.
FLAPS = 2
#: How long (ms) a rebalance may be overdue, because the members have to poll first; it is also the
#: least interval that Kafka accepts between two probing rebalances.
GRACE_MS = 60_000
#: The fewest steps of a trend that show certainly whether a lag shrinks.
FEWEST_CERTAIN_STEPS = FEWEST_POINTS - 1
#: A lag up to this may be transaction markers at the end of a changelog, which no store holds.
MARKERS = 2


@dataclass(frozen=True, slots=True)
class CopyContext:
    """The inputs of a verdict besides the copy's figures.

    ``waits_for``: restoring actives of its thread. ``flaps``: how often it was lost and rebuilt
    within ``GENERATIONS_WATCHED``. ``is_warmup``: whether a rebalance promotes it once caught up;
    ``since_ms``: when its generation began; ``rebalance_due_ms``: when the next rebalance is due,
    None if none is. ``patience_ms``: the application's ``probing.rebalance.interval.ms``.
    ``held_back``: what an open transaction holds back on its changelogs, "" if nothing.
    """

    is_warmup: bool
    since_ms: int
    patience_ms: int
    rebalance_due_ms: int | None = None
    waits_for: tuple[TaskId, ...] = ()
    flaps: int = 0
    held_back: str = ""


@dataclass(frozen=True, slots=True)
class CopyAssessment:
    """The assessment of one copy: a verdict, its reason in a sentence, and the figures behind it.

    ``role``: warmup, standby or restoring; ``is_warmup``: whether a rebalance promotes it once
    caught up. ``caught_up_since_ms``: None unless it is certainly caught up.
    """

    copy: CopyKey
    role: str
    is_warmup: bool
    verdict: str
    reason: str
    figures: CopyFigures
    caught_up_since_ms: int | None


def assess_copy(
    copy: CopyKey, role: str, figures: CopyFigures, context: CopyContext, now_ms: int
) -> CopyAssessment:
    """Return the assessment of a copy."""
    verdict, reason = copy_verdict(figures, context, now_ms)
    since_ms = caught_up_since_ms(figures, now_ms)
    return CopyAssessment(copy, role, context.is_warmup, verdict, reason, figures, since_ms)


def copy_verdict(figures: CopyFigures, context: CopyContext, now_ms: int) -> tuple[str, str]:
    """Return the verdict and its reason, by the table in this module's docstring."""
    if context.flaps >= FLAPS:
        return "flapping", (
            f"lost and rebuilt {context.flaps} times in the last {GENERATIONS_WATCHED} generations"
        )
    if figures.lag is None:
        return "unknown", (
            "no position of it was reported"
            if figures.provenance is None
            else "the end offsets of its changelogs are not known"
        )
    patience = context.patience_ms / 1000
    silence = max(patience, INTERVALS_ALLOWED * (figures.seen_every_seconds or 0.0))
    if figures.age_seconds > silence and figures.pace != "given":
        return "unknown", (
            f"no position was reported for {duration(figures.age_seconds)}; "
            f"its lag was {_lag(figures)} then"
        )
    since_ms = caught_up_since_ms(figures, now_ms)
    observed = figures.caught_up_since_ms is not None
    if since_ms is not None and (observed or not context.waits_for):
        return _caught_up(figures, context, since_ms, now_ms)
    if context.waits_for:
        first, count = context.waits_for[0], len(context.waits_for)
        others = f" and {count - 1} more" if count > 1 else ""
        return "waiting", (
            f"{_to_restore(figures)}; its stream thread restores its actives first: {first}{others}"
        )
    allowed = figures.allowed_seconds
    if figures.stood_seconds > (patience if allowed is None else allowed):
        reason = _stalled(figures, patience)
        # With exactly_once_v2 a copy restores committed records only.
        return "stalled", f"{reason}; {context.held_back}" if context.held_back else reason
    return _moving(figures)


def caught_up_since_ms(figures: CopyFigures, now_ms: int) -> int | None:
    """Return since when (ms) a copy is caught up; None unless it certainly is.

    Between observations, that is ``now_ms`` once the greatest ETA has passed.
    """
    if figures.caught_up_since_ms is not None:
        return figures.caught_up_since_ms
    if figures.eta is not None and figures.eta.high == 0:
        return now_ms
    return None


def _caught_up(
    figures: CopyFigures, context: CopyContext, since_ms: int, now_ms: int
) -> tuple[str, str]:
    if figures.caught_up_since_ms is None:
        reason = (
            f"its lag was {_lag(figures)} {duration(figures.age_seconds)} ago; "
            "at its pace of that time, it has caught up since"
        )
    else:
        reason = f"lag {_lag(figures)}, acceptable {figures.limit:,}"
    if not context.is_warmup:
        return "caught_up", reason
    due_ms = context.rebalance_due_ms
    if due_ms is None:
        idle_ms = now_ms - max(since_ms, context.since_ms)
        if idle_ms > GRACE_MS:
            return "stranded", (
                f"{reason}; it could have taken over {duration(idle_ms / 1000)} ago, "
                "but no rebalance is scheduled"
            )
    elif now_ms - max(due_ms, since_ms) > GRACE_MS:
        return "stranded", (
            f"{reason}; the rebalance that would promote it "
            f"was due {duration((now_ms - due_ms) / 1000)} ago"
        )
    return "caught_up", reason


def _stalled(figures: CopyFigures, patience: float) -> str:
    lag = figures.lag
    stood = duration(figures.stood_seconds)
    if figures.allowed_seconds is None:
        rhythm = (
            f"and none since caughtup first saw it; the probing interval is {duration(patience)}"
        )
    else:
        rhythm = f"longer than the {duration(figures.allowed_seconds)} that its usual pauses allow"
    reason = f"{_to_restore(figures)}, no progress for {stood}, {rhythm}"
    if lag is not None and lag.high <= MARKERS:
        reason += "; these may be transaction markers, which no copy restores"
    return reason


def _moving(figures: CopyFigures) -> tuple[str, str]:
    closing, eta = figures.closing, figures.eta
    left = f"lag {_lag(figures)}, acceptable {figures.limit:,}"
    if closing is None or eta is None:
        return "unknown", f"{left}; its pace is not known yet"
    pace = f"{left}, {_pace(figures)}"
    # A standstill within the allowance may be a pause.
    shortest = figures.allowed_seconds or LEAST_ALLOWED_MS / 1000
    enough = closing.steps >= FEWEST_CERTAIN_STEPS and closing.span_seconds >= shortest
    moves = figures.rate is None or (figures.rate > 0 and figures.growth != 0)
    falls_back = enough and moves and closing.per_second + closing.error <= 0
    if falls_back and math.isinf(eta.seconds):
        return "chasing", f"{pace}: at these rates it never catches up"
    if math.isfinite(eta.seconds) and (math.isfinite(eta.high) or not enough):
        reason = f"{pace}: caught up in {duration(eta.seconds)}{_between(eta)}"
        if figures.restored_before:
            copies = counted(figures.restored_before, "copy", "copies").removeprefix("1 ")
            reason += f", at the pace of the {copies} that its thread restores before it"
        return "warming", reason
    return "unknown", f"{pace}: it is not certain yet that it catches up"


def _lag(figures: CopyFigures) -> str:
    lag = figures.lag
    if lag is None:
        return "an unknown number"
    if lag.low == lag.high:
        return f"{lag.high:,}"
    return f"{lag.low:,} to {lag.high:,}"


def _to_restore(figures: CopyFigures) -> str:
    one = figures.lag is not None and figures.lag.low == figures.lag.high == 1
    return f"{_lag(figures)} offset{'' if one else 's'} to restore"


def _pace(figures: CopyFigures) -> str:
    closing = figures.closing
    if closing is None:
        return "at an unknown pace"
    whose = "measured by Spark" if figures.pace == "given" else "measured from its own positions"
    if figures.rate is None or figures.growth is None:
        return f"gains {closing.per_second:,.1f}/s, {whose}"
    return f"restores {figures.rate:,.1f}/s, {whose}, {figures.growth:,.1f}/s are written"


def _between(eta: Eta) -> str:
    """Return the bounds of an ETA in words, empty if both are the same in words."""
    low, high = duration(eta.low), duration(eta.high)
    if low == high:
        return ""
    if math.isinf(eta.high):
        return f" (at the earliest in {low})" if eta.low > 0 else " (its error is not known yet)"
    return f" ({low} to {high})"
