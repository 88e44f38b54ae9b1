"""The verdict on a partition's reassignment, from its observations.

From the top, the first that holds is the verdict:

=============  ================================================================================
measuring      observed fewer than three times
unknown        its last observation is too old, or it has no replicas
completing     it is no longer listed
no source      for a minute it has had no leader that runs; measuring before that
blocked        the required ISR has been complete for 30 s, a replica of the target is out of the ISR,
               and it is not known which replicas the controller waits for
stalled        the required ISR has been complete for 30 s, and the controller hasn't completed it
completing     the required ISR is complete
dead target    a broker that is to get a replica is down, fenced, or without that log directory
throttled out  a copy has stood still for longer than W, and in-sync replicas use up its throttle
stalled        a copy has something to get and has stood still for longer than W
blocked        all copies are there, but one cannot join the ISR, or a replica that stays is down,
               or out of sync and stands still
diverging      a copy gets less than its leader does: certainly, and for two W
slow           a copy grows, but will be there only after the budget, if one was given
moving         a copy grows
unknown        too little is known of a replica
measuring      no copy has grown yet: that may take W, or a minute if a broker comes back
tail           all copies are there, about to join the ISR
=============  ================================================================================

From ``dead target`` on, REPLICA_RULES find the state of each replica that is missing from the
required ISR; the verdict follows from those states. The *required ISR* are the replicas that the
controller waits for (``controllers.missing_from_isr``). *W* is how long a copy may stand still: at
least a minute, longer under throttles (``AwaitedReplica.allowed_ms``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from caughtup.models.reassignments.advice import advice_on
from caughtup.models.reassignments.awaited_replica import (
    AWAY_MS,
    FAILOVER_MS,
    FEWEST_OBSERVATIONS,
    JOIN_MS,
    AwaitedReplica,
    ReplicaFinding,
    ReplicaState,
    awaited_replicas,
    overdue,
)
from caughtup.models.reassignments.controllers import missing_from_isr, rule_known, target
from caughtup.models.reassignments.figures import THERE, ReassignmentFigures, reassignment_figures
from caughtup.models.reassignments.replica_causes import (
    away,
    caught_up,
    copying,
    in_both_lists,
    not_hosted,
    slowed_by_throttle,
    standing,
    too_little_known,
)
from caughtup.models.reassignments.replica_progress import observation_interval_ms
from caughtup.models.reassignments.throttle_rates import ThrottleShares
from caughtup.models.reassignments.throttle_shares import throttle_shares
from caughtup.models.reassignments.tracker import TrackedReassignment
from caughtup.models.records.fields import changed
from caughtup.models.records.reassignment_lines import Evidence
from caughtup.models.records.reassignments import ClusterRecord, ReassignmentRecord, lasting_since
from caughtup.models.verdicts import ENDLESS

#: Observations older than this (ms), or than three times the time between them, do not count.
STALE_MS = 60_000
#: The rules that find why a replica is out of the ISR; the first one that finds something counts.
REPLICA_RULES = (in_both_lists, away, not_hosted, too_little_known, caught_up, standing, copying)


class ReassignmentVerdict(NamedTuple):
    """A verdict (one of ``models/verdicts.py``), its cause, its evidence and advice."""

    verdict: str
    cause: str | None
    evidence: Evidence
    advice: str | None = None


def assess(
    tracked: TrackedReassignment,
    cluster: ClusterRecord | None,
    quorum_changed_ms: int | None,
    now_ms: int,
    budget_seconds: float | None,
    shares: ThrottleShares | None = None,
) -> tuple[ReassignmentVerdict, ReassignmentFigures]:
    """Return the verdict on a reassignment at ``now_ms``, and its figures.

    A moving one that needs more than ``budget_seconds`` from now is slow. ``shares`` are
    those of ``throttle_shares`` over all ongoing ones; without them each throttle counts as if no
    other reassignment used it.
    """
    latest = tracked.latest
    interval_ms = observation_interval_ms(tracked.observations)
    stale_ms = max(STALE_MS, 3 * interval_ms)
    if cluster is not None and now_ms - cluster.as_of_ms > 2 * stale_ms:
        cluster = changed(cluster, brokers=None)
    if shares is None:
        shares = throttle_shares((tracked,), cluster)
    replicas = awaited_replicas(tracked, cluster, quorum_changed_ms, shares, interval_ms)
    findings = {broker: _finding(replica) for broker, replica in replicas.items()}
    if len(tracked.observations) < FEWEST_OBSERVATIONS:
        judgement = ReassignmentVerdict("measuring", None, {})
    elif now_ms - latest.as_of_ms > stale_ms:
        silent_seconds = (now_ms - latest.as_of_ms) / 1000
        judgement = ReassignmentVerdict(
            "unknown", "not-looked-at", {"unknown_seconds": silent_seconds}
        )
    elif not latest.replicas:
        judgement = ReassignmentVerdict("unknown", "no-replicas", {})
    elif tracked.unlisted_ms is not None:
        judgement = ReassignmentVerdict("completing", None, {})
    else:
        judgement = (
            _without_leader(tracked, cluster)
            or (_by_replicas(latest, [*findings.values()]) if findings else None)
            or _in_sync_and_listed(tracked, cluster, quorum_changed_ms)
        )
    figures = reassignment_figures(
        tracked,
        replicas,
        {broker for broker, finding in findings.items() if finding.needs_operator},
        shares,
        now_ms,
        ends=judgement.verdict not in ENDLESS,
        known=judgement.verdict != "unknown",
    )
    if judgement.verdict == "moving" and budget_seconds is not None:
        slow = _over_budget(tracked, replicas, findings, figures, budget_seconds)
        judgement = slow or judgement
    changed_ms = None if quorum_changed_ms is None else now_ms - quorum_changed_ms
    return _explained(judgement, tracked, cluster, findings, figures, changed_ms), figures


def _finding(replica: AwaitedReplica) -> ReplicaFinding:
    return next(finding for rule in REPLICA_RULES if (finding := rule(replica)) is not None)


def _by_replicas(latest: ReassignmentRecord, findings: list[ReplicaFinding]) -> ReassignmentVerdict:
    """Return the verdict by the findings, at least one: the worst copy counts."""
    copies = [one for one in findings if one.replica in latest.adding]
    stays = [one for one in findings if one.replica not in latest.adding]
    for state, verdict in (
        (ReplicaState.DEAD, "dead target"),
        (ReplicaState.STALLED, "stalled"),
        (ReplicaState.STARVED, "throttled out"),
    ):
        for one in copies:
            if one.state == state:
                return ReassignmentVerdict(verdict, one.cause, one.evidence)
    hindered = next((one for one in (*stays, *copies) if one.needs_operator), None)
    if hindered is not None and all(
        one.state in (ReplicaState.TAIL, ReplicaState.STUCK) for one in copies
    ):
        return ReassignmentVerdict("blocked", _cause(latest, hindered), hindered.evidence)
    diverging = next((one for one in findings if one.state == ReplicaState.DIVERGING), None)
    if diverging is not None:
        return ReassignmentVerdict("diverging", diverging.cause, diverging.evidence)
    for state, verdict in (
        (ReplicaState.MOVING, "moving"),
        (ReplicaState.UNKNOWN, "unknown"),
        (ReplicaState.MEASURING, "measuring"),
    ):
        alike = [one for one in findings if one.state == state]
        if alike:
            waits = [one for one in findings if one.state == ReplicaState.MEASURING and one.cause]
            causes = [*alike, *waits] if state == ReplicaState.MOVING else alike
            one = hindered or next((one for one in causes if one.cause), alike[0])
            return ReassignmentVerdict(verdict, _cause(latest, one), one.evidence)
    return ReassignmentVerdict("tail", None, findings[0].evidence)


def _cause(latest: ReassignmentRecord, finding: ReplicaFinding) -> str | None:
    """Return a finding's cause; that of a replica that stays has another name."""
    if finding.replica in latest.adding or finding.state == ReplicaState.UNKNOWN:
        return finding.cause
    if finding.cause in ("destination-broker-down", "destination-broker-fenced"):
        return "retained-replica-down"
    return finding.cause if latest.adding else "removal-blocked"


def _explained(
    judgement: ReassignmentVerdict,
    tracked: TrackedReassignment,
    cluster: ClusterRecord | None,
    awaited: Iterable[int],
    figures: ReassignmentFigures,
    controller_age_ms: int | None,
) -> ReassignmentVerdict:
    """Return the verdict with all its evidence, and advice."""
    verdict, cause, evidence = judgement.verdict, judgement.cause, dict(judgement.evidence)
    waits = verdict in ("completing", "tail", "measuring") and cause is None
    if waits and controller_age_ms is not None and controller_age_ms < FAILOVER_MS:
        cause = "controller-failover"
        evidence["controller_changed_seconds"] = controller_age_ms / 1000
    waits_for = sorted(awaited)
    if waits_for:
        evidence["waits_for"] = waits_for
    if verdict == "blocked" and not rule_known(cluster):
        evidence["rule_assumed"] = True
    evidence["looks"] = len(tracked.observations)
    evidence["idle_seconds"] = figures.idle_seconds
    if figures.eta is not None and math.isfinite(figures.eta.seconds):
        evidence["eta_seconds"] = round(figures.eta.seconds, 1)
    return ReassignmentVerdict(verdict, cause, evidence, advice_on(cause, tracked, evidence))


def _without_leader(
    tracked: TrackedReassignment, cluster: ClusterRecord | None
) -> ReassignmentVerdict | None:
    """Return the verdict if the partition has no leader or its broker is gone, else None."""
    latest, brokers = tracked.latest, None if cluster is None else cluster.brokers
    leader = latest.leader
    gone = leader in latest.offline
    if brokers is not None and leader is not None:
        gone = gone or leader not in brokers or brokers[leader].fenced is True
    if not latest.has_metadata or (leader is not None and not gone):
        return None

    def lacks_leader(one: ReassignmentRecord) -> bool:
        serves = one.leader is not None and (one.leader != leader or leader in one.log_ends)
        return not serves and one.has_metadata

    since_ms, count = lasting_since(tracked.observations, lacks_leader)
    if leader is not None and count == 0:
        return None  # the leader still answers: metadata that lacks it is older
    evidence: Evidence = {
        "leaderless_seconds": (latest.as_of_ms - since_ms) / 1000,
        "in_sync": sorted(latest.isr),
        "sources": ", ".join(str(broker) for broker in sorted(latest.isr or tracked.original)),
    }
    if leader is not None:
        evidence["leader"] = leader
    lasts = count >= FEWEST_OBSERVATIONS and latest.as_of_ms - since_ms >= AWAY_MS
    return ReassignmentVerdict("no source" if lasts else "measuring", "leader-missing", evidence)


def _in_sync_and_listed(
    tracked: TrackedReassignment,
    cluster: ClusterRecord | None,
    quorum_changed_ms: int | None,
) -> ReassignmentVerdict:
    """Return the verdict on a reassignment that is listed though the required ISR is complete."""
    latest = tracked.latest
    since_ms, count = lasting_since(
        tracked.observations, lambda one: not missing_from_isr(one, cluster)
    )
    evidence: Evidence = {"in_sync_seconds": (latest.as_of_ms - since_ms) / 1000}
    lasts = overdue(since_ms, latest.as_of_ms, JOIN_MS, quorum_changed_ms)
    if count < FEWEST_OBSERVATIONS or not lasts:
        return ReassignmentVerdict("completing", None, evidence)
    out = sorted(set(target(latest)) - set(latest.isr))
    if out and not rule_known(cluster):
        evidence |= {"replica": out[0], "out_of_sync": out}
        cause = "retained-replica-down" if out[0] in latest.offline else "removal-blocked"
        return ReassignmentVerdict("blocked", cause, evidence)
    if cluster is not None and cluster.quorum_leader is not None:
        evidence["quorum_leader"] = cluster.quorum_leader
    return ReassignmentVerdict("stalled", "controller-slow", evidence)


def _over_budget(
    tracked: TrackedReassignment,
    replicas: Mapping[int, AwaitedReplica],
    findings: Mapping[int, ReplicaFinding],
    figures: ReassignmentFigures,
    budget_seconds: float,
) -> ReassignmentVerdict | None:
    """Return the verdict ``slow`` if the reassignment exceeds the budget, else None."""
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
    return ReassignmentVerdict("slow", cause, evidence)
