"""How a reassignment of a partition fares, from its observations to the verdict.

From the top, the first that holds is the verdict:

=============  ================================================================================
measuring      observed fewer than three times
unknown        not observed any more, or without replicas: nothing is known
completing     it is no longer listed
no source      it has had no leader that runs for a minute
completing     the required ISR is complete
stalled        the controller hasn't completed it half a minute after that
dead target    a broker that is to get a replica is down, fenced, or without that log directory
stalled        a copy has something to get and stands for longer than W
throttled out  the same, and in-sync replicas are known to use up its throttle
blocked        all copies are there, but one cannot join the ISR, or a replica that stays is down,
               or out of sync and stands
diverging      a copy gets less than its leader does: certainly, and for two W
slow           there after the budget, if one was given
moving         a copy grows
unknown        of the others not enough is known
measuring      no copy was seen to grow, which may take W, or a broker a minute to come back
tail           all copies are there, about to join the ISR
=============  ================================================================================

From ``dead target`` on it follows from what REPLICA_RULES find of each replica that the required
ISR lacks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from caughtup.models.reassignments.advice import advice_on
from caughtup.models.reassignments.awaited_replica import (
    FAILOVER_MS,
    FEWEST_OBSERVATIONS,
    AwaitedReplica,
    Evidence,
    Finding,
    State,
    awaited_replicas,
)
from caughtup.models.reassignments.figures import ReassignmentFigures, reassignment_figures
from caughtup.models.reassignments.partition_causes import (
    Judgement,
    in_sync_and_listed,
    over_budget,
    without_leader,
)
from caughtup.models.reassignments.replica_causes import (
    away,
    caught_up,
    copying,
    in_both_lists,
    not_hosted,
    standing,
    too_little_known,
)
from caughtup.models.reassignments.replica_progress import observation_interval_ms
from caughtup.models.reassignments.throttles.rates import ThrottleShares
from caughtup.models.reassignments.throttles.shares import throttle_shares
from caughtup.models.reassignments.tracking.controllers import rule_known
from caughtup.models.reassignments.tracking.observation import (
    ClusterObservation,
    PartitionObservation,
)
from caughtup.models.reassignments.tracking.tracked import TrackedReassignment

#: Every verdict that there is, the best first.
VERDICTS = (
    "completing",
    "tail",
    "moving",
    "measuring",
    "unknown",
    "slow",
    "diverging",
    "blocked",
    "throttled out",
    "stalled",
    "dead target",
    "no source",
)
#: Those that end only if somebody does something.
ENDLESS = frozenset(
    ("no source", "dead target", "stalled", "throttled out", "blocked", "diverging")
)
#: Observations older than this, or than three of the waits between them, say nothing of now. In ms.
STALE_MS = 60_000
#: Why a replica isn't in the ISR: the first of these that finds something says so.
REPLICA_RULES = (in_both_lists, away, not_hosted, too_little_known, caught_up, standing, copying)


@dataclass(frozen=True, slots=True)
class ReassignmentVerdict:
    """A verdict (one of VERDICTS), its cause, the numbers behind it, and what can be done."""

    verdict: str
    cause: str | None
    evidence: Evidence
    advice: str | None


def assess(
    tracked: TrackedReassignment,
    cluster: ClusterObservation | None,
    quorum_changed_ms: int | None,
    now_ms: int,
    budget_seconds: float | None,
    shares: ThrottleShares | None = None,
) -> tuple[ReassignmentVerdict, ReassignmentFigures]:
    """Return the verdict on a reassignment at ``now_ms``, and the figures that it rests on.

    ``budget_seconds``: one that takes longer from now on is slow. ``shares``: of
    ``throttle_shares`` over all ongoing ones; without it a throttle counts as if this one had it
    alone.
    """
    latest = tracked.latest
    interval_ms = observation_interval_ms(tracked.observations)
    stale_ms = max(STALE_MS, 3 * interval_ms)
    if cluster is not None and now_ms - cluster.as_of_ms > 2 * stale_ms:
        cluster = replace(cluster, brokers=None)
    if shares is None:
        shares = throttle_shares((tracked,), cluster)
    replicas = awaited_replicas(tracked, cluster, quorum_changed_ms, shares, interval_ms)
    findings = {broker: _finding(replica) for broker, replica in replicas.items()}
    if len(tracked.observations) < FEWEST_OBSERVATIONS:
        judgement = Judgement("measuring", None, {})
    elif now_ms - latest.as_of_ms > stale_ms:
        silent_seconds = (now_ms - latest.as_of_ms) / 1000
        judgement = Judgement("unknown", "not-looked-at", {"unknown_seconds": silent_seconds})
    elif not latest.replicas:
        judgement = Judgement("unknown", "no-replicas", {})
    elif tracked.unlisted_ms is not None:
        judgement = Judgement("completing", None, {})
    else:
        judgement = (
            without_leader(tracked, cluster)
            or (_by_replicas(latest, [*findings.values()]) if findings else None)
            or in_sync_and_listed(tracked, cluster, quorum_changed_ms)
        )
    figures = reassignment_figures(
        tracked,
        replicas,
        {broker for broker, finding in findings.items() if finding.stands},
        shares,
        now_ms,
        ends=judgement.verdict not in ENDLESS,
        known=judgement.verdict != "unknown",
    )
    if judgement.verdict == "moving" and budget_seconds is not None:
        slow = over_budget(tracked, replicas, findings, figures, budget_seconds)
        judgement = slow or judgement
    changed_ms = None if quorum_changed_ms is None else now_ms - quorum_changed_ms
    return _explained(judgement, tracked, cluster, findings, figures, changed_ms), figures


def _finding(replica: AwaitedReplica) -> Finding:
    return next(finding for rule in REPLICA_RULES if (finding := rule(replica)) is not None)


def _by_replicas(latest: PartitionObservation, findings: list[Finding]) -> Judgement:
    """Judge by the replicas that the required ISR lacks, one at least: the worst copy counts."""
    copies = [one for one in findings if one.replica in latest.adding]
    stays = [one for one in findings if one.replica not in latest.adding]
    for state, verdict in (
        (State.DEAD, "dead target"),
        (State.STALLED, "stalled"),
        (State.STARVED, "throttled out"),
    ):
        for one in copies:
            if one.state == state:
                return Judgement(verdict, one.cause, one.evidence)
    hindered = next((one for one in (*stays, *copies) if one.stands), None)
    if hindered is not None and all(one.state in (State.TAIL, State.STUCK) for one in copies):
        return Judgement("blocked", _cause(latest, hindered), hindered.evidence)
    diverging = next((one for one in findings if one.state == State.DIVERGING), None)
    if diverging is not None:
        return Judgement("diverging", diverging.cause, diverging.evidence)
    for state, verdict in (
        (State.MOVING, "moving"),
        (State.UNKNOWN, "unknown"),
        (State.MEASURING, "measuring"),
    ):
        alike = [one for one in findings if one.state == state]
        if alike:
            waits = [one for one in findings if one.state == State.MEASURING and one.cause]
            causes = [*alike, *waits] if state == State.MOVING else alike
            one = hindered or next((one for one in causes if one.cause), alike[0])
            return Judgement(verdict, _cause(latest, one), one.evidence)
    return Judgement("tail", None, findings[0].evidence)


def _cause(latest: PartitionObservation, finding: Finding) -> str | None:
    """Name the cause as it is for the reassignment: a replica that stays is no destination."""
    if finding.replica in latest.adding or finding.state == State.UNKNOWN:
        return finding.cause
    if finding.cause in ("destination-broker-down", "destination-broker-fenced"):
        return "retained-replica-down"
    return finding.cause if latest.adding else "removal-blocked"


def _explained(
    judgement: Judgement,
    tracked: TrackedReassignment,
    cluster: ClusterObservation | None,
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
