"""Somebody who observes the simulated replication now and then, and judges every reassignment."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple

from caughtup.models.reassignments.figures import ReassignmentFigures
from caughtup.models.reassignments.throttle_shares import throttle_shares
from caughtup.models.reassignments.tracker import ReassignmentTracker
from caughtup.models.reassignments.verdict import ReassignmentVerdict, assess
from tests.simulation.brokers import TICK_MS, Reassignment
from tests.simulation.replication import Cluster


class Judged(NamedTuple):
    """What an observer said of a reassignment at a moment."""

    now_ms: int
    reassignment: Reassignment
    verdict: ReassignmentVerdict
    figures: ReassignmentFigures


class Observer:
    """Observes every so many ms, sometimes later or not at all; answers are missing now and then."""

    def __init__(self, cluster: Cluster, chance: random.Random, gaps: float = 0.03) -> None:
        self.cluster, self._chance, self._gaps = cluster, chance, gaps
        self.interval_ms = chance.choice((2_000, 5_000, 10_000))
        self.tracker = ReassignmentTracker()
        self._next_ms = 0

    def run(self, until_ms: int) -> Iterator[Judged]:
        """Let time pass, and yield what is judged at each observation. Ends when all have ended."""
        cluster = self.cluster
        while cluster.now_ms < until_ms and cluster.ongoing:
            cluster.step()
            if cluster.now_ms < self._next_ms:
                continue
            late = self._chance.choice((0, 0, 0, TICK_MS, 2 * TICK_MS))
            self._next_ms = cluster.now_ms + self.interval_ms + late
            if self._chance.random() >= self._gaps:
                yield from self._observe()

    def _observe(self) -> Iterator[Judged]:
        cluster, tracker = self.cluster, self.tracker
        tracker.apply_cluster(cluster.cluster_observation())
        observations = cluster.observations(self._gaps)
        listed = {observation.topic_partition for observation in observations}
        for reassignment in cluster.reassignments:
            if reassignment.ended_ms is not None and reassignment.partition in tracker.ongoing:
                tracker.end(
                    reassignment.partition,
                    reassignment.new,
                    tuple(sorted(reassignment.isr)),
                    cluster.now_ms,
                )
        for observation in observations:
            tracker.apply(observation)
        shares = throttle_shares(tracker.ongoing.values(), tracker.cluster)
        for reassignment in cluster.ongoing:
            if reassignment.partition in listed:
                tracked = tracker.ongoing[reassignment.partition]
                judged = assess(
                    tracked,
                    tracker.cluster,
                    tracker.quorum_changed_ms,
                    cluster.now_ms,
                    None,
                    shares,
                )
                yield Judged(cluster.now_ms, reassignment, *judged)
