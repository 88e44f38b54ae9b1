"""What holds of a partition in movement as a whole: no leader, or only the controller is awaited."""

from __future__ import annotations

from caughtup.models.reassignments.awaited_replica import (
    AWAY_MS,
    FEWEST_OBSERVATIONS,
    JOIN_MS,
    Evidence,
    Finding,
    Surroundings,
)
from caughtup.models.reassignments.tracking.controllers import missing_from_isr, rule_known, target
from caughtup.models.reassignments.tracking.observation import (
    ClusterObservation,
    PartitionObservation,
)
from caughtup.models.reassignments.tracking.tracker import TrackedReassignment
from caughtup.models.reassignments.verdict import Judgement


def without_leader(
    tracked: TrackedReassignment, cluster: ClusterObservation | None
) -> Judgement | None:
    """Judge a movement whose partition has no leader, or one whose broker is gone; else None."""
    observation, brokers = tracked.latest, None if cluster is None else cluster.brokers
    leader = observation.leader
    gone = leader in observation.offline
    if brokers is not None and leader is not None:
        gone = gone or leader not in brokers or brokers[leader].fenced is True
    if not has_metadata(observation) or (leader is not None and not gone):
        return None
    since_ms, count = observation.as_of_ms, 0
    for one in reversed(tracked.observations):
        serves = one.leader is not None and (one.leader != leader or leader in one.log_ends)
        if serves or not has_metadata(one):
            break
        since_ms, count = one.as_of_ms, count + 1
    if leader is not None and count == 0:
        return None  # it answers: whoever says that it is gone has an older view
    evidence: Evidence = {
        "leaderless_seconds": (observation.as_of_ms - since_ms) / 1000,
        "in_sync": sorted(observation.isr),
        "sources": ", ".join(str(broker) for broker in sorted(observation.isr or tracked.original)),
    }
    if leader is not None:
        evidence["leader"] = leader
    lasts = count >= FEWEST_OBSERVATIONS and observation.as_of_ms - since_ms >= AWAY_MS
    return told("no source" if lasts else "measuring", "leader-missing", evidence)


def with_all_in_sync(
    tracked: TrackedReassignment, cluster: ClusterObservation | None, quorum_changed_ms: int | None
) -> Judgement:
    """Judge a movement whose controller waits for nobody any more, though it is listed."""
    observation = tracked.latest
    since_ms, count = observation.as_of_ms, 0
    for one in reversed(tracked.observations):
        if missing_from_isr(one, cluster):
            break
        since_ms, count = one.as_of_ms, count + 1
    evidence: Evidence = {"in_sync_seconds": (observation.as_of_ms - since_ms) / 1000}
    around = Surroundings(tracked.observations, cluster, (), JOIN_MS, quorum_changed_ms, True)
    if count < FEWEST_OBSERVATIONS or not around.overdue(since_ms, observation.as_of_ms, JOIN_MS):
        return told("completing", None, evidence)
    out = sorted(set(target(observation)) - set(observation.isr))
    if out and not rule_known(cluster):
        evidence |= {"replica": out[0], "out_of_sync": out}
        cause = "retained-replica-down" if out[0] in observation.offline else "removal-blocked"
        return told("blocked", cause, evidence)
    if cluster is not None and cluster.quorum_leader is not None:
        evidence["quorum_leader"] = cluster.quorum_leader
    return told("stalled", "controller-slow", evidence)


def told(verdict: str, cause: str | None, evidence: Evidence) -> Judgement:
    """Make a judgement that is due to no replica."""
    return Judgement(verdict, cause, Finding(-1, verdict, cause, evidence))


def has_metadata(observation: PartitionObservation) -> bool:
    """Tell whether a broker's metadata of the partition was had: it names a leader or an epoch."""
    return (
        observation.leader is not None
        or observation.leader_epoch is not None
        or bool(observation.isr)
    )
