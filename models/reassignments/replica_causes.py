"""Why a replica that the controller waits for is out of the ISR: one function for each rule.

``verdict.REPLICA_RULES`` has their order; each assumes that the rules before it found nothing.
"""

from __future__ import annotations

from caughtup.models.histories.trend import Trend
from caughtup.models.reassignments.awaited_replica import (
    AWAY_MS,
    FEWEST_OBSERVATIONS,
    JOIN_MS,
    LEAST_ALLOWED_MS,
    AwaitedReplica,
    ReplicaFinding,
    ReplicaState,
)
from caughtup.models.records.reassignment_lines import Evidence
from caughtup.models.records.reassignments import lasting_since

#: A log directory with less room is full, since a broker rolls segments and indexes of more.
FULL_BYTES = 64 << 20
#: A log end that goes back once may be a truncation to the leader's log, or a broker's crash.
FEWEST_DROPS = 2


def in_both_lists(replica: AwaitedReplica) -> ReplicaFinding | None:
    """Find that the broker is both added and removed, which no controller can complete."""
    if replica.broker in replica.latest.adding and replica.broker in replica.latest.removing:
        return ReplicaFinding(
            replica.broker, ReplicaState.STUCK, "in-both-lists", {"replica": replica.broker}
        )
    return None


def away(replica: AwaitedReplica) -> ReplicaFinding | None:
    """Find that the replica's broker is gone or fenced, or has lost the log directory."""
    broker, latest = replica.broker, replica.latest
    registered = replica.brokers.get(broker) if replica.brokers is not None else None
    gone = replica.brokers is not None and (registered is None or registered.fenced is True)
    if not gone and broker not in latest.offline:
        return None
    since_ms, count = _away_since(replica, gone)
    if count == 0:
        return None  # it still copies: metadata that shows it offline is older
    answers = any(
        broker in one.log_ends or broker in one.not_hosted or broker in one.sizes
        for one in replica.observations[-min(count, FEWEST_OBSERVATIONS) :]
    )
    if not gone and registered is not None and registered.offline_directories:
        cause = "directory-offline"
    elif gone and registered is not None and answers:
        cause = "destination-broker-fenced"
    else:
        cause = "destination-broker-down"
    away_seconds = (latest.as_of_ms - since_ms) / 1000
    evidence: Evidence = {"replica": broker, "away_seconds": away_seconds, "answers": answers}
    if replica.brokers is not None:
        evidence["registered"] = registered is not None
    if registered is not None and registered.fenced is not None:
        evidence["fenced"] = registered.fenced
    if replica.progress.behind is not None:
        evidence["offsets_behind"] = replica.progress.behind
    lasts = count >= FEWEST_OBSERVATIONS and replica.overdue(since_ms, latest.as_of_ms, AWAY_MS)
    if lasts:
        return ReplicaFinding(broker, ReplicaState.DEAD, cause, evidence)
    # A copy that was never seen to grow is not known to move.
    state = ReplicaState.MOVING if replica.progress.moved else ReplicaState.MEASURING
    return ReplicaFinding(broker, state, cause, evidence)


def _away_since(replica: AwaitedReplica, gone: bool) -> tuple[int, int]:
    """Return since when (ms) and for how many observations a broker is away and its copy stands.

    The number is 0 if the copy grew at the last one, unless controllers and a broker agree that
    the broker is away: a fenced broker may copy, and cannot join the ISR.
    """
    broker, latest, progress = replica.broker, replica.latest, replica.progress
    since_ms, count = latest.as_of_ms, 0
    later_end: int | None = None
    for one in reversed(replica.observations):
        end = one.log_ends.get(broker)
        agreed = gone and broker in one.offline
        if end is not None and later_end is not None and end < later_end and not agreed:
            grew = count == 1 and broker in latest.log_ends
            return since_ms, 0 if grew else count
        if broker not in one.offline and not (gone and end is None):
            break
        later_end = end if end is not None else later_end
        since_ms, count = one.as_of_ms, count + 1
    if count == 0:  # only the controllers say so: count from its standstill or catch-up
        stands_ms = progress.near_since_ms or progress.stands_since_ms
        return latest.as_of_ms if stands_ms is None else stands_ms, progress.samples
    return since_ms, count


def not_hosted(replica: AwaitedReplica) -> ReplicaFinding | None:
    """Find that the broker reports that it lacks the replica."""
    broker, latest = replica.broker, replica.latest
    if broker not in latest.not_hosted:
        return None
    since_ms, count = lasting_since(replica.observations, lambda one: broker in one.not_hosted)
    evidence: Evidence = {
        "replica": broker,
        "missing_seconds": (latest.as_of_ms - since_ms) / 1000,
        "allowed_seconds": replica.allowed_ms / 1000,
    }
    lasts = replica.overdue(since_ms, latest.as_of_ms, replica.allowed_ms)
    if count < FEWEST_OBSERVATIONS or not lasts:
        return ReplicaFinding(broker, ReplicaState.MEASURING, None, evidence)
    cause = _disk_trouble(replica, evidence) or "replica-not-created"
    return ReplicaFinding(broker, ReplicaState.STALLED, cause, evidence)


def too_little_known(replica: AwaitedReplica) -> ReplicaFinding | None:
    """Find that too few log ends are known for the rules below."""
    broker, latest, progress = replica.broker, replica.latest, replica.progress
    if progress.samples == 0 or progress.seen_ms is None:
        count = len(replica.observations)
        state = ReplicaState.UNKNOWN if count >= FEWEST_OBSERVATIONS else ReplicaState.MEASURING
        cause = "replica-unanswered" if broker in latest.unanswered else "log-end-unknown"
        return ReplicaFinding(broker, state, cause, {"replica": broker, "looks": count})
    silent_ms = latest.as_of_ms - progress.seen_ms
    if silent_ms >= replica.allowed_ms:
        evidence: Evidence = {"replica": broker, "unknown_seconds": silent_ms / 1000}
        return ReplicaFinding(broker, ReplicaState.UNKNOWN, "replica-unanswered", evidence)
    if progress.samples < FEWEST_OBSERVATIONS:
        return ReplicaFinding(
            broker, ReplicaState.MEASURING, None, {"replica": broker, "looks": progress.samples}
        )
    if progress.behind is None:
        evidence = {"replica": broker, "log_end": progress.log_end or 0}
        stands_ms = progress.stands_since_ms or progress.seen_ms
        if progress.moved and progress.seen_ms - stands_ms < replica.allowed_ms:
            return ReplicaFinding(broker, ReplicaState.MOVING, None, evidence)
        return ReplicaFinding(broker, ReplicaState.UNKNOWN, "leader-log-end-unknown", evidence)
    return None


def caught_up(replica: AwaitedReplica) -> ReplicaFinding | None:
    """Find that the replica has its leader's previously observed end, and may join the ISR."""
    broker, progress = replica.broker, replica.progress
    since_ms, seen_ms = progress.near_since_ms, progress.seen_ms
    if since_ms is None or seen_ms is None:
        return None
    if progress.behind and replica.throttles and progress.stands_since_ms != seen_ms:
        return None  # it may wait for its share of the throttle just before the end
    evidence: Evidence = {
        "replica": broker,
        "offsets_behind": progress.behind or 0,
        "caught_up_seconds": (seen_ms - since_ms) / 1000,
    }
    if not replica.latest.has_metadata:
        return ReplicaFinding(broker, ReplicaState.UNKNOWN, "isr-unknown", evidence)
    allowed = replica.allowed_ms if progress.behind or replica.throttles else JOIN_MS
    lasts = replica.overdue(since_ms, seen_ms, allowed)
    if progress.near_observations < FEWEST_OBSERVATIONS or not lasts:
        return ReplicaFinding(broker, ReplicaState.TAIL, None, evidence)
    return ReplicaFinding(broker, ReplicaState.STUCK, "cannot-join-isr", evidence)


def standing(replica: AwaitedReplica) -> ReplicaFinding | None:
    """Find that the replica does not copy though it is behind, or loses what it copies."""
    broker, progress = replica.broker, replica.progress
    seen_ms, stands_ms = progress.seen_ms, progress.stands_since_ms
    if seen_ms is None or stands_ms is None:
        return None
    evidence: Evidence = {
        "replica": broker,
        "offsets_behind": progress.behind or 0,
        "allowed_seconds": replica.allowed_ms / 1000,
    }
    if _starts_over(replica):
        evidence["set_back_times"] = progress.drops
        evidence["offsets_copied"], evidence["offsets_lost"] = progress.gained, progress.lost
        return ReplicaFinding(broker, ReplicaState.STALLED, "restart-loop", evidence)
    used_up = any(throttle.used_up for throttle in replica.throttles)
    if not replica.overdue(stands_ms, seen_ms, LEAST_ALLOWED_MS if used_up else replica.allowed_ms):
        return None
    evidence["stood_seconds"] = (seen_ms - stands_ms) / 1000
    if progress.bytes_behind is not None:
        evidence["bytes_behind"] = progress.bytes_behind
    cause = _disk_trouble(replica, evidence)
    if cause is None and replica.throttles:
        evidence |= replica.throttles[0].figures()
        if replica.throttles[0].starved:
            return ReplicaFinding(broker, ReplicaState.STARVED, "throttle-starved", evidence)
    return ReplicaFinding(broker, ReplicaState.STALLED, cause or "copy-stopped", evidence)


def _starts_over(replica: AwaitedReplica) -> bool:
    """Return whether a log end went back repeatedly, by half of what was copied or more."""
    progress = replica.progress
    since_ms, seen_ms = progress.dropped_since_ms, progress.seen_ms
    if since_ms is None or seen_ms is None or progress.drops < FEWEST_DROPS:
        return False
    lasts = replica.overdue(since_ms, seen_ms, LEAST_ALLOWED_MS)
    return lasts and 2 * progress.lost >= progress.gained


def _disk_trouble(replica: AwaitedReplica, evidence: Evidence) -> str | None:
    """Return the cause if it is the broker's disk (full, or a directory offline), else None."""
    known = None if replica.brokers is None else replica.brokers.get(replica.broker)
    if known is None:
        return None
    if known.usable_bytes is not None:
        evidence["usable_bytes"] = known.usable_bytes
        if known.usable_bytes < FULL_BYTES:
            return "disk-full"
    if known.offline_directories:
        evidence["offline_directories"] = list(known.offline_directories)
        return "directory-offline"
    return None


def copying(replica: AwaitedReplica) -> ReplicaFinding:
    """Find that the replica copies, or had no time yet to show that it does."""
    broker, progress = replica.broker, replica.progress
    evidence: Evidence = {"replica": broker, "offsets_behind": progress.behind or 0}
    if not progress.moved:
        return ReplicaFinding(broker, ReplicaState.MEASURING, None, evidence)
    if progress.rate is not None:
        evidence["offsets_per_second"] = round(progress.rate, 3)
    if progress.rate_bytes is not None:
        evidence["bytes_per_second"] = round(progress.rate_bytes)
    if progress.closing is None or progress.growth is None or progress.growth <= 0:
        return ReplicaFinding(broker, ReplicaState.MOVING, None, evidence)
    evidence["written_offsets_per_second"] = round(progress.growth, 3)
    falls_back = progress.falls_back
    if falls_back is not None and _diverges(replica, falls_back):
        evidence["over_seconds"] = falls_back.span_seconds
        cause = slowed_by_throttle(replica, evidence) or "leader-outruns-copy"
        return ReplicaFinding(broker, ReplicaState.DIVERGING, cause, evidence)
    return ReplicaFinding(broker, ReplicaState.MOVING, None, evidence)


def _diverges(replica: AwaitedReplica, falls_back: Trend) -> bool:
    """Return whether a distance certainly grows, and was observed for long enough.

    Behind a throttle a copy proceeds in steps, so it has to fall back by more than one of them.
    """
    if falls_back.per_second < falls_back.error or falls_back.steps <= FEWEST_OBSERVATIONS:
        return False
    if falls_back.span_seconds * 1000 < 1.9 * replica.allowed_ms:
        return False
    fell = falls_back.per_second * falls_back.span_seconds
    return not replica.throttles or fell > replica.progress.longest_step


def slowed_by_throttle(replica: AwaitedReplica, evidence: Evidence) -> str | None:
    """Return ``throttle-slow`` if a throttle slows the copy, and add it to the evidence."""
    if not replica.throttles:
        return None
    throttle = replica.throttles[0]
    evidence |= throttle.figures()
    if replica.progress.rate_bytes is None:
        return "throttle-slow"  # without sizes the throttle may be the limit
    return "throttle-slow" if throttle.tight else None
