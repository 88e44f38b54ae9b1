"""One partition's movement assessed: its verdict, and the figures that it rests on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from caughtup.models.histories.trend import Eta
from caughtup.models.reassignments.advice import CANCEL, advice, brokers
from caughtup.models.reassignments.awaited_replica import (
    DEAD,
    FAILOVER_MS,
    FEWEST_OBSERVATIONS,
    STALLED,
    STARVED,
    STUCK,
    Evidence,
    Finding,
    Surroundings,
    allowed_ms,
)
from caughtup.models.reassignments.figures import (
    NEVER,
    THERE,
    ReassignmentFigures,
    ReplicaFigures,
    reassignment_figures,
    replica_eta,
    replica_figures,
)
from caughtup.models.reassignments.partition import (
    has_metadata,
    told,
    with_all_in_sync,
    without_leader,
)
from caughtup.models.reassignments.replica_causes import replica_finding, slowing
from caughtup.models.reassignments.replica_progress import (
    ReplicaProgress,
    observation_interval_ms,
    replica_progress,
)
from caughtup.models.reassignments.throttles.rates import throttles_known
from caughtup.models.reassignments.throttles.shares import (
    FETCH_BYTES,
    Throttle,
    ThrottleShares,
    throttle_shares,
    throttles_on,
)
from caughtup.models.reassignments.tracking.controllers import (
    missing_from_isr,
    reverted,
    rule_known,
)
from caughtup.models.reassignments.tracking.observation import ClusterObservation
from caughtup.models.reassignments.tracking.tracker import TrackedReassignment
from caughtup.models.reassignments.verdict import ENDLESS, Judgement, ReassignmentVerdict, judge

#: Looks older than this, or than three of the waits between them, tell nothing of now. In ms.
STALE_MS = 60_000
#: Rates are taken over this time (ms), or so many looks, or, behind a throttle, over the time in
#: which a copy gets so many fetches: soon up to date when the pace changes, and no shorter than
#: what chance does. Whether a copy falls back is told from so many W.
RATE_MS = 45_000
RATE_OBSERVATIONS = 5
RATE_FETCHES = 60
LONG_WINDOWS = 3


def assess(
    tracked: TrackedReassignment,
    cluster: ClusterObservation | None,
    quorum_changed_ms: int | None,
    now_ms: int,
    budget_seconds: float | None,
    shares: ThrottleShares | None = None,
) -> tuple[ReassignmentVerdict, ReassignmentFigures]:
    """Assess one partition's movement at ``now_ms``.

    ``budget_seconds``: a movement that takes longer from now on is slow. ``shares``: of
    ``throttle_shares`` over all partitions in movement; without it a throttle counts as if this
    one had it alone.
    """
    latest = tracked.latest
    apart_ms = observation_interval_ms(tracked.observations)
    stale_ms = max(STALE_MS, 3 * apart_ms)
    if cluster is not None and now_ms - cluster.as_of_ms > 2 * stale_ms:
        cluster = replace(cluster, brokers=None)
    if shares is None:
        shares = throttle_shares((tracked,), cluster)
    assessment = _Assessment(tracked, cluster, quorum_changed_ms, now_ms, shares, apart_ms)
    judgement = assessment.judge()
    if len(tracked.observations) < FEWEST_OBSERVATIONS:
        judgement = Judgement("measuring", None, None)
    elif now_ms - latest.as_of_ms > stale_ms:
        silent = (now_ms - latest.as_of_ms) / 1000
        judgement = told("unknown", "not-looked-at", {"unknown_seconds": silent})
    figures = assessment.figures(judgement.verdict)
    if judgement.verdict == "moving" and budget_seconds is not None:
        judgement = assessment.against(budget_seconds, figures) or judgement
    return assessment.verdict(judgement, figures), figures


class _Assessment:
    """What is worked out once of a movement, and what follows from it."""

    def __init__(
        self,
        tracked: TrackedReassignment,
        cluster: ClusterObservation | None,
        quorum_changed_ms: int | None,
        now_ms: int,
        shares: ThrottleShares,
        apart_ms: int,
    ) -> None:
        self.tracked, self.observation, self.cluster = tracked, tracked.latest, cluster
        self.now_ms, self.quorum_changed_ms = now_ms, quorum_changed_ms
        self.shares = shares
        self.progress: dict[int, ReplicaProgress] = {}
        self.around: dict[int, Surroundings] = {}
        self.findings: dict[int, Finding] = {}
        observation = self.observation
        for broker in missing_from_isr(observation, cluster):
            throttles = throttles_on(
                observation.partition, observation.leader, broker, cluster, shares
            )
            between = (broker,) if observation.leader is None else (broker, observation.leader)
            known = throttles_known(cluster, between)
            allowed = allowed_ms(throttles, apart_ms, known=known)
            self.around[broker] = Surroundings(
                tracked.observations,
                cluster,
                throttles,
                allowed,
                quorum_changed_ms,
                has_metadata(observation),
            )
            self.progress[broker] = replica_progress(
                tracked.observations,
                broker,
                _window_ms(throttles, apart_ms),
                LONG_WINDOWS * allowed,
            )
            if broker in observation.adding and broker in observation.removing:
                evidence: Evidence = {"replica": broker}
                self.findings[broker] = Finding(broker, STUCK, "in-both-lists", evidence)
            else:
                self.findings[broker] = replica_finding(self.progress[broker], self.around[broker])

    def judge(self) -> Judgement:
        """Give the verdict that the last look supports."""
        observation = self.observation
        if not observation.replicas:
            return told("unknown", "no-replicas", {})
        if self.tracked.unlisted_ms is not None:
            return told("completing", None, {})
        leaderless = without_leader(self.tracked, self.cluster)
        if leaderless is not None:
            return leaderless
        if not self.findings:
            return with_all_in_sync(self.tracked, self.cluster, self.quorum_changed_ms)
        return judge(observation, list(self.findings.values()))

    def figures(self, verdict: str) -> ReassignmentFigures:
        """Gather the figures; under some verdicts it never ends as things are."""
        ends = verdict not in ENDLESS
        replicas: dict[int, ReplicaFigures] = {}
        for broker, progress in self.progress.items():
            gets_there = self.findings[broker].state not in (DEAD, STALLED, STARVED, STUCK)
            eta: Eta | None = NEVER
            if gets_there:
                factor = self.shares.sooner.get((self.observation.partition, broker), 1.0)
                eta = replica_eta(progress, self.around[broker].throttles, factor, self.now_ms)
            replicas[broker] = replica_figures(progress, eta)
        figures = reassignment_figures(
            replicas,
            ends=ends,
            age_seconds=max(0, self.now_ms - self.tracked.since_ms) / 1000,
            idle_seconds=max(0, self.now_ms - self.tracked.progressed_ms) / 1000,
        )
        if verdict == "unknown" and not replicas:
            return replace(figures, offsets_remaining=None, bytes_remaining=None, eta=None)
        return figures

    def against(self, budget_seconds: float, figures: ReassignmentFigures) -> Judgement | None:
        """Judge a movement that moves by the time that it may take."""
        eta = figures.eta
        if eta is None or (eta.low <= budget_seconds and not math.isfinite(eta.seconds)):
            return None
        broker = max(figures.replicas, key=lambda one: (figures.replicas[one].eta or THERE).seconds)
        progress, around = self.progress[broker], self.around[broker]
        closing, rate, growth = progress.closing, progress.rate, progress.growth
        if eta.seconds <= budget_seconds or closing is None or rate is None:
            return None
        if self.observation.as_of_ms - self.tracked.observations[0].as_of_ms < around.allowed_ms:
            return None
        evidence = dict(self.findings[broker].evidence)
        evidence["budget_seconds"] = budget_seconds
        cause = self.findings[broker].cause or slowing(progress, around.throttles, evidence)
        if cause is None:
            grows = growth is not None and growth >= rate / 2
            cause = "write-rate" if grows else "copy-slow"
        return Judgement("slow", cause, Finding(broker, "slow", cause, evidence))

    def verdict(self, judgement: Judgement, figures: ReassignmentFigures) -> ReassignmentVerdict:
        """Put a judgement into its final form, with evidence and advice."""
        finding, cause = judgement.finding, judgement.cause
        evidence: Evidence = dict(finding.evidence) if finding is not None else {}
        if judgement.verdict in ("completing", "tail", "measuring") and cause is None:
            changed_ms = self.quorum_changed_ms
            if changed_ms is not None and self.now_ms - changed_ms < FAILOVER_MS:
                cause = "controller-failover"
                evidence["controller_changed_seconds"] = (self.now_ms - changed_ms) / 1000
        if self.findings:
            evidence["waits_for"] = sorted(self.findings)
        if judgement.verdict == "blocked" and not rule_known(self.cluster):
            evidence["rule_assumed"] = True
        evidence["looks"] = len(self.tracked.observations)
        evidence["idle_seconds"] = figures.idle_seconds
        eta = figures.eta
        if eta is not None and math.isfinite(eta.seconds):
            evidence["eta_seconds"] = round(eta.seconds, 1)
        help_ = advice(cause, self.observation.partition, self.observation.leader, evidence)
        left = reverted(self.observation)
        if help_ is not None and CANCEL in help_ and set(left) != set(self.tracked.original):
            help_ += f"; since the target was changed, that leaves brokers {brokers(left)}, "
            help_ += f"where {brokers(self.tracked.original)} had it"
        return ReassignmentVerdict(judgement.verdict, cause, evidence, help_)


def _window_ms(throttles: Sequence[Throttle], apart_ms: int) -> int:
    """Tell over which time a copy's rates are taken, in ms."""
    fetches = [RATE_FETCHES * one.copies * FETCH_BYTES / max(1, one.rate) for one in throttles]
    shortest = 2 * RATE_MS if throttles else RATE_MS
    return max(shortest, RATE_OBSERVATIONS * apart_ms, round(1000 * max(fetches, default=0.0)))
