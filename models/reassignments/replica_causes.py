"""Why a replica that the controller waits for isn't in sync yet: one finding per replica."""

from __future__ import annotations

from collections.abc import Sequence

from caughtup.models.histories.trend import Trend
from caughtup.models.reassignments.absence import away, disk_trouble, not_hosted, untold
from caughtup.models.reassignments.awaited_replica import (
    DIVERGING,
    FEWEST_OBSERVATIONS,
    JOIN_MS,
    LEAST_ALLOWED_MS,
    MEASURING,
    MOVING,
    STALLED,
    STARVED,
    STUCK,
    TAIL,
    UNKNOWN,
    Evidence,
    Finding,
    Surroundings,
)
from caughtup.models.reassignments.replica_progress import ReplicaProgress
from caughtup.models.reassignments.throttles.shares import Throttle

#: A copy that goes back once was truncated to its leader's log, or on a broker that crashed.
FEWEST_DROPS = 2


def replica_finding(progress: ReplicaProgress, around: Surroundings) -> Finding:
    """Judge a replica that is needed and isn't in the ISR. The first that holds is the finding."""
    return (
        away(progress, around)
        or not_hosted(progress, around)
        or untold(progress, around)
        or _caught_up(progress, around)
        or _standing(progress, around)
        or _going(progress, around)
    )


def _caught_up(progress: ReplicaProgress, around: Surroundings) -> Finding | None:
    """The replica has everything, or what the leader had a look ago, and may join the ISR."""
    since_ms, seen_ms = progress.near_since_ms, progress.seen_ms
    if since_ms is None or seen_ms is None:
        return None
    if progress.behind and around.throttles and progress.stands_since_ms != seen_ms:
        return None  # it may wait just before the end for its share
    waits = (seen_ms - since_ms) / 1000
    evidence: Evidence = {
        "replica": progress.broker,
        "offsets_behind": progress.behind or 0,
        "caught_up_seconds": waits,
    }
    if not around.metadata:
        return Finding(progress.broker, UNKNOWN, "isr-unknown", evidence)
    allowed = around.allowed_ms if progress.behind or around.throttles else JOIN_MS
    if progress.near_observations < FEWEST_OBSERVATIONS or not around.overdue(
        since_ms, seen_ms, allowed
    ):
        return Finding(progress.broker, TAIL, None, evidence)
    return Finding(progress.broker, STUCK, "cannot-join-isr", evidence)


def _standing(progress: ReplicaProgress, around: Surroundings) -> Finding | None:
    """The replica has something to copy, and doesn't."""
    seen_ms, stands_ms = progress.seen_ms, progress.stands_since_ms
    if seen_ms is None or stands_ms is None:
        return None
    evidence: Evidence = {
        "replica": progress.broker,
        "offsets_behind": progress.behind or 0,
        "allowed_seconds": around.allowed_ms / 1000,
    }
    if _loses(progress, around):
        evidence["set_back_times"] = progress.drops
        evidence["offsets_copied"], evidence["offsets_lost"] = progress.gained, progress.lost
        return Finding(progress.broker, STALLED, "restart-loop", evidence)
    used_up = any(throttle.used_up for throttle in around.throttles)
    allowed = LEAST_ALLOWED_MS if used_up else around.allowed_ms
    if not around.overdue(stands_ms, seen_ms, allowed):
        return None
    evidence["stood_seconds"] = (seen_ms - stands_ms) / 1000
    if progress.bytes_behind is not None:
        evidence["bytes_behind"] = progress.bytes_behind
    cause = disk_trouble(progress.broker, around, evidence)
    if cause is None and around.throttles:
        throttle = around.throttles[0]
        evidence |= throttle_evidence(throttle)
        if throttle.starved:
            return Finding(progress.broker, STARVED, "throttle-starved", evidence)
    return Finding(progress.broker, STALLED, cause or "copy-stopped", evidence)


def _loses(progress: ReplicaProgress, around: Surroundings) -> bool:
    """Tell whether a copy was set back again, and lost half of what it copied meanwhile or more."""
    since_ms, seen_ms = progress.dropped_since_ms, progress.seen_ms
    if since_ms is None or seen_ms is None or progress.drops < FEWEST_DROPS:
        return False
    lasts = around.overdue(since_ms, seen_ms, LEAST_ALLOWED_MS)
    return lasts and 2 * progress.lost >= progress.gained


def _going(progress: ReplicaProgress, around: Surroundings) -> Finding:
    """The replica copies, or hasn't had the time to show that it does."""
    evidence: Evidence = {"replica": progress.broker, "offsets_behind": progress.behind or 0}
    closing, rate, growth = progress.closing, progress.rate, progress.growth
    if not progress.moved:
        return Finding(progress.broker, MEASURING, None, evidence)
    if rate is not None:
        evidence["offsets_per_second"] = round(rate, 3)
    if progress.rate_bytes is not None:
        evidence["bytes_per_second"] = round(progress.rate_bytes)
    if closing is None or growth is None or growth <= 0:
        return Finding(progress.broker, MOVING, None, evidence)
    evidence["written_offsets_per_second"] = round(growth, 3)
    falls_back = progress.falls_back
    if falls_back is not None and _diverges(progress, falls_back, around):
        evidence["over_seconds"] = falls_back.span_seconds
        cause = slowing(progress, around.throttles, evidence) or "leader-outruns-copy"
        return Finding(progress.broker, DIVERGING, cause, evidence)
    return Finding(progress.broker, MOVING, None, evidence)


def _diverges(progress: ReplicaProgress, falls_back: Trend, around: Surroundings) -> bool:
    """Tell whether a distance certainly grows, and was seen to for long enough to go by it.

    Behind a throttle a copy comes in steps: it has to fall back by more than one of them.
    """
    if falls_back.per_second < falls_back.error or falls_back.steps <= FEWEST_OBSERVATIONS:
        return False
    if falls_back.span_seconds * 1000 < 1.9 * around.allowed_ms:
        return False
    fell = falls_back.per_second * falls_back.span_seconds
    return not around.throttles or fell > progress.longest_step


def slowing(
    progress: ReplicaProgress, throttles: Sequence[Throttle], evidence: Evidence
) -> str | None:
    """Give ``throttle-slow`` if a throttle is what slows a copy, and write down the evidence."""
    if not throttles:
        return None
    throttle = throttles[0]
    evidence |= throttle_evidence(throttle)
    if progress.rate_bytes is None:
        return "throttle-slow"  # without sizes nothing says that the throttle isn't the limit
    return "throttle-slow" if throttle.tight else None


def throttle_evidence(throttle: Throttle) -> Evidence:
    """Put a throttle in numbers: whose, bytes a second, and what is known to use it."""
    return {
        "throttled_broker": throttle.broker,
        "throttled_as": throttle.side,
        "throttle_bytes_per_second": throttle.rate,
        "in_sync_bytes_per_second": round(throttle.share.in_sync_bytes),
        "copied_bytes_per_second": round(throttle.share.copied_bytes),
        "copies_sharing_it": throttle.share.copies,
    }
