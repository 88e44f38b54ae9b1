"""What holds for a reassignment as a whole: its leader, the controller, and the time it may take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from caughtup.models.reassignments.awaited_replica import (
    AWAY_MS,
    FEWEST_OBSERVATIONS,
    JOIN_MS,
    AwaitedReplica,
    Evidence,
    Finding,
    overdue,
)
from caughtup.models.reassignments.figures import THERE, ReassignmentFigures
from caughtup.models.reassignments.replica_causes import slowed_by_throttle
from caughtup.models.reassignments.tracking.controllers import missing_from_isr, rule_known, target
from caughtup.models.reassignments.tracking.observation import (
    ClusterObservation,
    PartitionObservation,
    lasting_since,
)
from caughtup.models.reassignments.tracking.tracked import TrackedReassignment


class Judgement(NamedTuple):
    """A verdict, its cause, and the numbers that it is due to."""

    verdict: str
    cause: str | None
    evidence: Evidence


def without_leader(
    tracked: TrackedReassignment, cluster: ClusterObservation | None
) -> Judgement | None:
    """Judge a partition that has no leader, or one whose broker is gone; None if it has one."""
    latest, brokers = tracked.latest, None if cluster is None else cluster.brokers
    leader = latest.leader
    gone = leader in latest.offline
    if brokers is not None and leader is not None:
        gone = gone or leader not in brokers or brokers[leader].fenced is True
    if not latest.has_metadata or (leader is not None and not gone):
        return None

    def lacks_leader(one: PartitionObservation) -> bool:
        serves = one.leader is not None and (one.leader != leader or leader in one.log_ends)
        return not serves and one.has_metadata

    since_ms, count = lasting_since(tracked.observations, lacks_leader)
    if leader is not None and count == 0:
        return None  # it answers: whoever says that it is gone has an older view
    evidence: Evidence = {
        "leaderless_seconds": (latest.as_of_ms - since_ms) / 1000,
        "in_sync": sorted(latest.isr),
        "sources": ", ".join(str(broker) for broker in sorted(latest.isr or tracked.original)),
    }
    if leader is not None:
        evidence["leader"] = leader
    lasts = count >= FEWEST_OBSERVATIONS and latest.as_of_ms - since_ms >= AWAY_MS
    return Judgement("no source" if lasts else "measuring", "leader-missing", evidence)


def in_sync_and_listed(
    tracked: TrackedReassignment,
    cluster: ClusterObservation | None,
    quorum_changed_ms: int | None,
) -> Judgement:
    """Judge a reassignment that is still listed though the required ISR is complete."""
    latest = tracked.latest
    since_ms, count = lasting_since(
        tracked.observations, lambda one: not missing_from_isr(one, cluster)
    )
    evidence: Evidence = {"in_sync_seconds": (latest.as_of_ms - since_ms) / 1000}
    lasts = overdue(since_ms, latest.as_of_ms, JOIN_MS, quorum_changed_ms)
    if count < FEWEST_OBSERVATIONS or not lasts:
        return Judgement("completing", None, evidence)
    out = sorted(set(target(latest)) - set(latest.isr))
    if out and not rule_known(cluster):
        evidence |= {"replica": out[0], "out_of_sync": out}
        cause = "retained-replica-down" if out[0] in latest.offline else "removal-blocked"
        return Judgement("blocked", cause, evidence)
    if cluster is not None and cluster.quorum_leader is not None:
        evidence["quorum_leader"] = cluster.quorum_leader
    return Judgement("stalled", "controller-slow", evidence)


def over_budget(
    tracked: TrackedReassignment,
    replicas: Mapping[int, AwaitedReplica],
    findings: Mapping[int, Finding],
    figures: ReassignmentFigures,
    budget_seconds: float,
) -> Judgement | None:
    """Judge a reassignment that goes on by the time that it may take; None if it is in time."""
    eta = figures.eta
    if eta is None or (eta.low <= budget_seconds and not math.isfinite(eta.seconds)):
        return None
    broker = max(figures.replicas, key=lambda one: (figures.replicas[one].eta or THERE).seconds)
    replica, finding = replicas[broker], findings[broker]
    closing, rate, growth = replica.progress.closing, replica.progress.rate, replica.progress.growth
    if eta.seconds <= budget_seconds or closing is None or rate is None:
        return None
    observed_ms = tracked.latest.as_of_ms - tracked.observations[0].as_of_ms
    if observed_ms < replica.allowed_ms:
        return None
    evidence: Evidence = {**finding.evidence, "budget_seconds": budget_seconds}
    cause = finding.cause or slowed_by_throttle(replica, evidence)
    if cause is None:
        grows = growth is not None and growth >= rate / 2
        cause = "write-rate" if grows else "copy-slow"
    return Judgement("slow", cause, evidence)
