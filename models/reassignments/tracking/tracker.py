"""Every reassignment that is ongoing, and how the last ones ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking import controllers, ends
from caughtup.models.reassignments.tracking.ends import EndedReassignment
from caughtup.models.reassignments.tracking.observation import (
    ClusterObservation,
    PartitionObservation,
)
from caughtup.models.reassignments.tracking.tracked import TrackedReassignment

#: How many observations are kept of a reassignment, and of all that are ongoing: each takes about
#: a kilobyte.
OBSERVATIONS = 240
OBSERVATIONS_OF_ALL = 100_000
#: Of one reassignment at least so many, however many there are.
LEAST_OBSERVATIONS = 8
#: After so long, in ms, what the brokers show of one that isn't listed is its end; and
#: it is another topic's where it can't be.
SETTLED_MS = 30_000
OLDER_MS = 10 * 60_000
_WAITS_MS = {"over": 0, "unclear": SETTLED_MS, "older": OLDER_MS}


@dataclass(slots=True)
class ReassignmentTracker:
    """Every ongoing reassignment, the cluster around them, and the last ones that ended.

    ``quorum_changed_ms``: when another controller was first seen to be active. ``ended_counts``
    counts by outcome all that ended.
    """

    ongoing: dict[TopicPartition, TrackedReassignment] = field(default_factory=dict)
    cluster: ClusterObservation | None = None
    quorum_changed_ms: int | None = None
    ended: list[EndedReassignment] = field(default_factory=list)
    ended_counts: Counter[str] = field(default_factory=Counter)
    kept: int = 50
    _quorum: tuple[int, int] | None = None

    def apply_cluster(self, observation: ClusterObservation) -> None:
        """Apply what a round observed of the cluster."""
        self.cluster = observation
        if self.quorum_changed_ms is not None:  # later only if the clock was set back since
            self.quorum_changed_ms = min(self.quorum_changed_ms, observation.as_of_ms)
        if observation.quorum_leader is None or observation.quorum_epoch is None:
            return
        quorum = (observation.quorum_leader, observation.quorum_epoch)
        if self._quorum not in (None, quorum):
            self.quorum_changed_ms = observation.as_of_ms
        self._quorum = quorum

    def apply(
        self,
        observation: PartitionObservation,
        *,
        since_ms: int | None = None,
        original: tuple[int, ...] | None = None,
    ) -> EndedReassignment | None:
        """Apply an observation of a partition that the controller lists as reassigned.

        ``since_ms`` and ``original`` are what an earlier run of the service knew of it; they
        count where this one doesn't know the reassignment yet. Observations count in the order in
        which they come. Returns the reassignment that must have ended before, where it is another.
        """
        tracked = self.ongoing.get(observation.partition)
        ended = None
        if tracked is not None and ends.is_another_reassignment(
            tracked.latest, tracked.original, observation, self.cluster
        ):
            base = controllers.reverted(observation)
            reached = set(base) == set(controllers.target(tracked.latest))
            left = controllers.target(tracked.latest) if reached else base
            ended = self._ended(tracked, left or None, observation.as_of_ms)
            tracked = None
        if tracked is None:
            since = (
                observation.as_of_ms if since_ms is None else min(since_ms, observation.as_of_ms)
            )
            before = controllers.reverted(observation) if original is None else original
            self.ongoing[observation.partition] = TrackedReassignment(
                first=observation,
                observations=[observation],
                since_ms=since,
                progressed_ms=observation.as_of_ms,
                original=before,
                isr=observation.isr,
                log_ends=dict(observation.log_ends),
            )
            return ended
        tracked.add(observation, self.cluster)
        tracked.thin(
            max(LEAST_OBSERVATIONS, min(OBSERVATIONS, OBSERVATIONS_OF_ALL // len(self.ongoing)))
        )
        return None

    def unlisted(self, partition: TopicPartition, at_ms: int) -> None:
        """Note that the controller no longer lists a partition, before its end is certain."""
        tracked = self.ongoing.get(partition)
        if tracked is not None and (tracked.unlisted_ms is None or at_ms < tracked.unlisted_ms):
            tracked.unlisted_ms = at_ms

    def end(
        self,
        partition: TopicPartition,
        replicas: tuple[int, ...] | None,
        isr: tuple[int, ...],
        at_ms: int,
        leader_epoch: int | None = None,
        *,
        certain: bool = False,
    ) -> EndedReassignment | None:
        """Apply that one isn't listed, and what the brokers show (None: the topic is gone).

        Return how it ended; None of one that isn't known, and while a broker may show what was
        before the end: it is then ``unlisted`` until this is called again with what is the end,
        or SETTLED_MS after the first call; OLDER_MS where it cannot be the end, but only that of
        a topic which took the name. Nothing waits where the caller is ``certain`` of the end.
        """
        tracked = self.ongoing.get(partition)
        if tracked is None or replicas == ():
            return None
        self.unlisted(partition, at_ms)
        waited_ms = at_ms - (at_ms if tracked.unlisted_ms is None else tracked.unlisted_ms)
        if replicas is not None and not certain:
            state = ends.metadata_shows(
                tracked.observations, self.cluster, replicas, isr, leader_epoch
            )
            if waited_ms < _WAITS_MS[state]:
                return None
            if state == "older":
                replicas = None
        del self.ongoing[partition]
        return self._ended(tracked, replicas, at_ms)

    def _ended(
        self, tracked: TrackedReassignment, replicas: tuple[int, ...] | None, at_ms: int
    ) -> EndedReassignment:
        ended = ends.ended(tracked.latest, tracked.original, replicas, tracked.since_ms, at_ms)
        self.ended = [*self.ended, ended][-self.kept :]
        self.ended_counts[ended.outcome] += 1
        return ended
