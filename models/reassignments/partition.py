"""What holds of a partition in movement as a whole: no leader, or only the controller is awaited."""

from __future__ import annotations

from caughtup.models.reassignments.awaited_replica import (
    AWAY_MS,
    FEWEST_LOOKS,
    JOIN_MS,
    Evidence,
    Finding,
    Surroundings,
)
from caughtup.models.reassignments.tracking.controllers import pending, rule_known, target
from caughtup.models.reassignments.tracking.observation import ClusterLook, PartitionLook
from caughtup.models.reassignments.tracking.tracker import TrackedMovement
from caughtup.models.reassignments.verdict import Judgement


def without_leader(tracked: TrackedMovement, cluster: ClusterLook | None) -> Judgement | None:
    """Judge a movement whose partition has no leader, or one whose broker is gone; else None."""
    look, brokers = tracked.latest, None if cluster is None else cluster.brokers
    leader = look.leader
    gone = leader in look.offline
    if brokers is not None and leader is not None:
        gone = gone or leader not in brokers or brokers[leader].fenced is True
    if not has_metadata(look) or (leader is not None and not gone):
        return None
    since_ms, count = look.as_of_ms, 0
    for one in reversed(tracked.looks):
        serves = one.leader is not None and (one.leader != leader or leader in one.log_ends)
        if serves or not has_metadata(one):
            break
        since_ms, count = one.as_of_ms, count + 1
    if leader is not None and count == 0:
        return None  # it answers: whoever says that it is gone has an older view
    evidence: Evidence = {
        "leaderless_seconds": (look.as_of_ms - since_ms) / 1000,
        "in_sync": sorted(look.isr),
        "sources": ", ".join(str(broker) for broker in sorted(look.isr or tracked.original)),
    }
    if leader is not None:
        evidence["leader"] = leader
    lasts = count >= FEWEST_LOOKS and look.as_of_ms - since_ms >= AWAY_MS
    return told("no source" if lasts else "measuring", "leader-missing", evidence)


def with_all_in_sync(
    tracked: TrackedMovement, cluster: ClusterLook | None, quorum_changed_ms: int | None
) -> Judgement:
    """Judge a movement whose controller waits for nobody any more, though it is listed."""
    look = tracked.latest
    since_ms, count = look.as_of_ms, 0
    for one in reversed(tracked.looks):
        if pending(one, cluster):
            break
        since_ms, count = one.as_of_ms, count + 1
    evidence: Evidence = {"in_sync_seconds": (look.as_of_ms - since_ms) / 1000}
    around = Surroundings(tracked.looks, cluster, (), JOIN_MS, quorum_changed_ms, True)
    if count < FEWEST_LOOKS or not around.overdue(since_ms, look.as_of_ms, JOIN_MS):
        return told("completing", None, evidence)
    out = sorted(set(target(look)) - set(look.isr))
    if out and not rule_known(cluster):
        evidence |= {"replica": out[0], "out_of_sync": out}
        cause = "retained-replica-down" if out[0] in look.offline else "removal-blocked"
        return told("blocked", cause, evidence)
    if cluster is not None and cluster.quorum_leader is not None:
        evidence["quorum_leader"] = cluster.quorum_leader
    return told("stalled", "controller-slow", evidence)


def told(verdict: str, cause: str | None, evidence: Evidence) -> Judgement:
    """Make a judgement that is due to no replica."""
    return Judgement(verdict, cause, Finding(-1, verdict, cause, evidence))


def has_metadata(look: PartitionLook) -> bool:
    """Tell whether a broker's metadata of the partition was had: it names a leader or an epoch."""
    return look.leader is not None or look.leader_epoch is not None or bool(look.isr)
