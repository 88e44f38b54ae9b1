"""Replicas of which nothing can be copied: the broker is away, has no such replica, or is silent."""

from __future__ import annotations

from caughtup.models.reassignments.awaited_replica import (
    AWAY_MS,
    DEAD,
    FEWEST_OBSERVATIONS,
    MEASURING,
    MOVING,
    STALLED,
    UNKNOWN,
    Evidence,
    Finding,
    Surroundings,
)
from caughtup.models.reassignments.replica_progress import ReplicaProgress

#: A log directory with less room is full: a broker rolls segments and indexes of more.
FULL_BYTES = 64 << 20


def away(progress: ReplicaProgress, around: Surroundings) -> Finding | None:
    """The replica's broker is gone, fenced, or has lost the log directory."""
    broker, latest = progress.broker, around.latest
    registered = around.brokers.get(broker) if around.brokers is not None else None
    gone = around.brokers is not None and (registered is None or registered.fenced is True)
    if not gone and broker not in latest.offline:
        return None
    since_ms, observations = _away_since(progress, around, gone)
    lately = around.observations[-max(1, min(observations, FEWEST_OBSERVATIONS)) :]
    answers = any(
        broker in observation.log_ends
        or broker in observation.not_hosted
        or broker in observation.sizes
        for observation in lately
    )
    if observations == 0:
        return None  # it goes on copying: whoever says that it is offline has an older view
    if not gone and registered is not None and registered.offline_directories:
        cause = "directory-offline"
    elif gone and registered is not None and answers:
        cause = "destination-broker-fenced"
    else:
        cause = "destination-broker-down"
    away = (latest.as_of_ms - since_ms) / 1000
    evidence: Evidence = {"replica": broker, "away_seconds": away, "answers": answers}
    if around.brokers is not None:
        evidence["registered"] = registered is not None
    if registered is not None and registered.fenced is not None:
        evidence["fenced"] = registered.fenced
    if progress.behind is not None:
        evidence["offsets_behind"] = progress.behind
    lasts = observations >= FEWEST_OBSERVATIONS and around.overdue(
        since_ms, latest.as_of_ms, AWAY_MS
    )
    return Finding(broker, DEAD if lasts else MOVING, cause, evidence)


def _away_since(progress: ReplicaProgress, around: Surroundings, gone: bool) -> tuple[int, int]:
    """Tell since when (ms) and at how many looks a broker is away, its copy standing.

    No look at all if the copy grew at the last one, unless the controllers and a broker agree that
    the broker is away: a fenced one may copy, and still not join the ISR.
    """
    broker, latest = progress.broker, around.latest
    since_ms, count = latest.as_of_ms, 0
    end: int | None = None
    for observation in reversed(around.observations):
        told = observation.log_ends.get(broker)
        agreed = gone and broker in observation.offline
        if told is not None and end is not None and told < end and not agreed:
            grew = count == 1 and broker in latest.log_ends
            return since_ms, 0 if grew else count
        if broker not in observation.offline and not (gone and told is None):
            break
        end = told if told is not None else end
        since_ms, count = observation.as_of_ms, count + 1
    if count == 0:  # only the controllers tell: since it stands, or has nothing left to do
        stands_ms = progress.near_since_ms or progress.stands_since_ms
        return latest.as_of_ms if stands_ms is None else stands_ms, progress.samples
    return since_ms, count


def not_hosted(progress: ReplicaProgress, around: Surroundings) -> Finding | None:
    """The replica's broker answers that it has no such replica."""
    broker, latest = progress.broker, around.latest
    if broker not in latest.not_hosted:
        return None
    since_ms, count = latest.as_of_ms, 0
    for observation in reversed(around.observations):
        if broker not in observation.not_hosted:
            break
        since_ms, count = observation.as_of_ms, count + 1
    seconds = (latest.as_of_ms - since_ms) / 1000
    evidence: Evidence = {
        "replica": broker,
        "missing_seconds": seconds,
        "allowed_seconds": around.allowed_ms / 1000,
    }
    lasts = around.overdue(since_ms, latest.as_of_ms, around.allowed_ms)
    if count < FEWEST_OBSERVATIONS or not lasts:
        return Finding(broker, MEASURING, None, evidence)
    cause = disk_trouble(broker, around, evidence) or "replica-not-created"
    return Finding(broker, STALLED, cause, evidence)


def untold(progress: ReplicaProgress, around: Surroundings) -> Finding | None:
    """Too little is known of the replica for more."""
    broker, latest = progress.broker, around.latest
    if progress.samples == 0 or progress.seen_ms is None:
        state = UNKNOWN if len(around.observations) >= FEWEST_OBSERVATIONS else MEASURING
        cause = "replica-unanswered" if broker in latest.unanswered else "log-end-unknown"
        return Finding(broker, state, cause, {"replica": broker, "looks": len(around.observations)})
    silent_ms = latest.as_of_ms - progress.seen_ms
    if silent_ms >= around.allowed_ms:
        evidence: Evidence = {"replica": broker, "unknown_seconds": silent_ms / 1000}
        return Finding(broker, UNKNOWN, "replica-unanswered", evidence)
    if progress.samples < FEWEST_OBSERVATIONS:
        return Finding(broker, MEASURING, None, {"replica": broker, "looks": progress.samples})
    if progress.behind is None:
        evidence = {"replica": broker, "log_end": progress.log_end or 0}
        stands_ms = progress.stands_since_ms or progress.seen_ms
        moves = progress.moved and progress.seen_ms - stands_ms < around.allowed_ms
        state = MOVING if moves else UNKNOWN
        return Finding(broker, state, None if moves else "leader-log-end-unknown", evidence)
    return None


def disk_trouble(broker: int, around: Surroundings, evidence: Evidence) -> str | None:
    """Tell whether the broker's disk is why: a directory offline, or no room."""
    known = None if around.brokers is None else around.brokers.get(broker)
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
