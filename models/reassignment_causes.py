"""Why a replica that the controller waits for isn't in sync yet: one finding per replica.

The first that holds is the finding. *Over W* means: for longer than the replica may stand, which
is a minute, what its throttles make it wait, or three looks, whichever is longest. Times count up to
the last look that knew the replica, never beyond it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from caughtup.models.reassignment_look import BrokerLook, ClusterLook, PartitionLook
from caughtup.models.replica_progress import ReplicaProgress
from caughtup.models.throttle_shares import Throttle
from caughtup.models.trend import Trend

#: What a verdict may hold as evidence; all of it can be written as JSON.
Evidence = dict[str, "int | float | str | bool | list[int] | list[str]"]

#: No verdict from fewer looks.
FEWEST_LOOKS = 3
#: How long a broker may be away, as long as a restart takes; a copy may stand, at least; a new
#: controller gets to settle. In ms.
AWAY_MS = 60_000
LEAST_ALLOWED_MS = 60_000
FAILOVER_MS = 60_000
#: What is caught up joins the ISR within a second or two, if nothing is wrong. In ms.
JOIN_MS = 30_000
LOOKS_ALLOWED = 3
#: A log directory with less room is full: a broker rolls segments and indexes of more.
FULL_BYTES = 64 << 20
#: The part of its throttle that a copy gets from which on the throttle is what slows it.
THROTTLED_PART = 0.6

DEAD, STALLED, STARVED, STUCK = "dead", "stalled", "starved", "stuck"
DIVERGING, MOVING, TAIL = "diverging", "moving", "tail"
MEASURING, UNKNOWN = "measuring", "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is to be said of one replica: a state, its cause (None: none is needed), evidence."""

    replica: int
    state: str
    cause: str | None
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a finding takes into account besides the replica's own progress.

    ``throttles``: those on it, the tightest first. ``allowed_ms``: W. ``metadata``: whether a
    broker's metadata of the partition was had, so that the ISR is known.
    """

    looks: Sequence[PartitionLook]
    cluster: ClusterLook | None
    throttles: tuple[Throttle, ...]
    allowed_ms: int
    quorum_changed_ms: int | None
    metadata: bool

    @property
    def latest(self) -> PartitionLook:
        """The last look."""
        return self.looks[-1]

    @property
    def brokers(self) -> Mapping[int, BrokerLook] | None:
        """The registered brokers, None if unknown."""
        return None if self.cluster is None else self.cluster.brokers

    def overdue(self, since_ms: int, until_ms: int, allowed_ms: int) -> bool:
        """Tell whether something has lasted for too long; a change of controllers adds a grace.

        What was overdue before the change stays so.
        """
        due_ms = since_ms + allowed_ms
        changed_ms = self.quorum_changed_ms
        if changed_ms is not None and changed_ms < due_ms:
            due_ms = max(due_ms, changed_ms + FAILOVER_MS)
        return until_ms >= due_ms


def allowed_ms(throttles: Sequence[Throttle], looks_apart_ms: int) -> int:
    """Give W: for how long a copy may stand, in ms."""
    patience = sum(throttle.patience_seconds for throttle in throttles)
    return max(LEAST_ALLOWED_MS, round(patience * 1000), LOOKS_ALLOWED * looks_apart_ms)


def replica_finding(progress: ReplicaProgress, around: Surroundings) -> Finding:
    """Judge a replica that is needed and isn't in the ISR."""
    return (
        _away(progress, around)
        or _not_hosted(progress, around)
        or _untold(progress, around)
        or _caught_up(progress, around)
        or _standing(progress, around)
        or _going(progress, around)
    )


def _away(progress: ReplicaProgress, around: Surroundings) -> Finding | None:
    """The replica's broker is gone, fenced, or has lost the log directory."""
    broker, latest = progress.broker, around.latest
    registered = around.brokers.get(broker) if around.brokers is not None else None
    gone = around.brokers is not None and (registered is None or registered.fenced is True)
    if not gone and broker not in latest.offline:
        return None
    since_ms, looks = _away_since(progress, around, gone)
    answers = broker in latest.log_ends or broker in latest.not_hosted or broker in latest.sizes
    if looks == 0:
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
    lasts = looks >= FEWEST_LOOKS and around.overdue(since_ms, latest.as_of_ms, AWAY_MS)
    return Finding(broker, DEAD if lasts else MOVING, cause, evidence)


def _away_since(progress: ReplicaProgress, around: Surroundings, gone: bool) -> tuple[int, int]:
    """Tell since when (ms) and at how many looks a broker is away, its copy standing.

    No look at all if the copy grew at the last one.
    """
    broker, latest = progress.broker, around.latest
    since_ms, count = latest.as_of_ms, 0
    end: int | None = None
    for look in reversed(around.looks):
        told = look.log_ends.get(broker)
        if told is not None and end is not None and told < end:
            grew = count == 1 and broker in latest.log_ends
            return since_ms, 0 if grew else count
        if broker not in look.offline and not (gone and told is None):
            break
        end = told if told is not None else end
        since_ms, count = look.as_of_ms, count + 1
    if count == 0:  # only the controllers tell: since it stands, or has nothing left to do
        stands_ms = progress.near_since_ms or progress.stands_since_ms
        return latest.as_of_ms if stands_ms is None else stands_ms, progress.samples
    return since_ms, count


def _not_hosted(progress: ReplicaProgress, around: Surroundings) -> Finding | None:
    """The replica's broker answers that it has no such replica."""
    broker, latest = progress.broker, around.latest
    if broker not in latest.not_hosted:
        return None
    since_ms, count = latest.as_of_ms, 0
    for look in reversed(around.looks):
        if broker not in look.not_hosted:
            break
        since_ms, count = look.as_of_ms, count + 1
    seconds = (latest.as_of_ms - since_ms) / 1000
    evidence: Evidence = {
        "replica": broker,
        "missing_seconds": seconds,
        "allowed_seconds": around.allowed_ms / 1000,
    }
    lasts = around.overdue(since_ms, latest.as_of_ms, around.allowed_ms)
    if count < FEWEST_LOOKS or not lasts:
        return Finding(broker, MEASURING, None, evidence)
    cause = _disk(broker, around, evidence) or "replica-not-created"
    return Finding(broker, STALLED, cause, evidence)


def _untold(progress: ReplicaProgress, around: Surroundings) -> Finding | None:
    """Too little is known of the replica for more."""
    broker, latest = progress.broker, around.latest
    if progress.samples == 0 or progress.seen_ms is None:
        state = UNKNOWN if len(around.looks) >= FEWEST_LOOKS else MEASURING
        cause = "replica-unanswered" if broker in latest.unanswered else "log-end-unknown"
        return Finding(broker, state, cause, {"replica": broker, "looks": len(around.looks)})
    silent_ms = latest.as_of_ms - progress.seen_ms
    if silent_ms >= around.allowed_ms:
        evidence: Evidence = {"replica": broker, "unknown_seconds": silent_ms / 1000}
        return Finding(broker, UNKNOWN, "replica-unanswered", evidence)
    if progress.samples < FEWEST_LOOKS:
        return Finding(broker, MEASURING, None, {"replica": broker, "looks": progress.samples})
    if progress.behind is None:
        evidence = {"replica": broker, "log_end": progress.log_end or 0}
        stands_ms = progress.stands_since_ms or progress.seen_ms
        moves = progress.moved and progress.seen_ms - stands_ms < around.allowed_ms
        state = MOVING if moves else UNKNOWN
        return Finding(broker, state, None if moves else "leader-log-end-unknown", evidence)
    return None


def _caught_up(progress: ReplicaProgress, around: Surroundings) -> Finding | None:
    """The replica has everything, or what the leader had a look ago, and may join the ISR."""
    since_ms, seen_ms = progress.near_since_ms, progress.seen_ms
    if since_ms is None or seen_ms is None or (progress.behind and around.throttles):
        return None  # a throttled copy may wait just before the end for its share
    waits = (seen_ms - since_ms) / 1000
    evidence: Evidence = {
        "replica": progress.broker,
        "offsets_behind": progress.behind or 0,
        "caught_up_seconds": waits,
    }
    if not around.metadata:
        return Finding(progress.broker, UNKNOWN, "isr-unknown", evidence)
    allowed = around.allowed_ms if progress.behind or around.throttles else JOIN_MS
    if progress.near_looks < FEWEST_LOOKS or not around.overdue(since_ms, seen_ms, allowed):
        return Finding(progress.broker, TAIL, None, evidence)
    return Finding(progress.broker, STUCK, "cannot-join-isr", evidence)


def _standing(progress: ReplicaProgress, around: Surroundings) -> Finding | None:
    """The replica has something to copy, and doesn't."""
    seen_ms, stands_ms, peak_ms = (
        progress.seen_ms,
        progress.stands_since_ms,
        progress.peak_since_ms,
    )
    if seen_ms is None or stands_ms is None or peak_ms is None:
        return None
    evidence: Evidence = {
        "replica": progress.broker,
        "offsets_behind": progress.behind or 0,
        "allowed_seconds": around.allowed_ms / 1000,
    }
    if progress.drops > 1 and around.overdue(peak_ms, seen_ms, around.allowed_ms):
        evidence["set_back_times"] = progress.drops
        evidence["stood_seconds"] = (seen_ms - peak_ms) / 1000
        return Finding(progress.broker, STALLED, "restart-loop", evidence)
    used_up = any(throttle.used_up for throttle in around.throttles)
    allowed = LEAST_ALLOWED_MS if used_up else around.allowed_ms
    if not around.overdue(stands_ms, seen_ms, allowed):
        return None
    evidence["stood_seconds"] = (seen_ms - stands_ms) / 1000
    if progress.bytes_behind is not None:
        evidence["bytes_behind"] = progress.bytes_behind
    cause = _disk(progress.broker, around, evidence)
    if cause is None and around.throttles:
        throttle = around.throttles[0]
        evidence |= throttle_evidence(throttle)
        if throttle.starved:
            return Finding(progress.broker, STARVED, "throttle-starved", evidence)
    return Finding(progress.broker, STALLED, cause or "copy-stopped", evidence)


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
    if closing.per_second + closing.error <= 0 and _lasts(progress, closing, around):
        evidence["over_seconds"] = closing.span_seconds
        cause = slowing(progress, around.throttles, evidence) or "leader-outruns-copy"
        return Finding(progress.broker, DIVERGING, cause, evidence)
    return Finding(progress.broker, MOVING, None, evidence)


def _lasts(progress: ReplicaProgress, closing: Trend, around: Surroundings) -> bool:
    """Tell whether a distance was seen to grow for long enough to go by it.

    Behind a throttle a copy comes in steps: it has to fall back by more than one of them.
    """
    if closing.steps <= FEWEST_LOOKS or closing.span_seconds * 1000 < 1.9 * around.allowed_ms:
        return False
    fell = -closing.per_second * closing.span_seconds
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
    used = throttle.share.copied_bytes + throttle.share.in_sync_bytes
    return "throttle-slow" if used >= THROTTLED_PART * throttle.rate else None


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


def _disk(broker: int, around: Surroundings, evidence: Evidence) -> str | None:
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
