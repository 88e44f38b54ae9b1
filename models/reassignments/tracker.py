"""The ongoing reassignments, and how the last ones ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from caughtup.models.histories.thinning import kept_points
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments import controllers, ends
from caughtup.models.records.fields import changed
from caughtup.models.records.reassignment_lines import EndedReassignment
from caughtup.models.records.reassignments import ClusterRecord, ReassignmentRecord

#: How long observations of a reassignment are kept, in ms.
HISTORY_MS = 15 * 60_000
#: The most joins of the ISR that are kept of a reassignment.
JOINS = 100
_SHARED = ("topic", "replicas", "adding", "removing", "isr", "log_ends", "sizes", "original")
#: The most observations that are kept of a reassignment, and of all ongoing ones: each takes
#: about a kilobyte.
OBSERVATIONS = 240
OBSERVATIONS_OF_ALL = 100_000
#: The fewest that are kept of a reassignment, however many there are.
LEAST_OBSERVATIONS = 8
#: How long after it is unlisted (ms) unclear metadata counts as a reassignment's end, and
#: metadata that cannot be its end counts as another topic's.
SETTLED_MS = 30_000
OLDER_MS = 10 * 60_000
_WAITS_MS = {"over": 0, "unclear": SETTLED_MS, "older": OLDER_MS}


@dataclass(slots=True)
class TrackedReassignment:
    """A reassignment over time.

    ``first`` is its first observation; ``observations`` are the last ones, oldest first, the older
    the sparser. ``original`` has the replicas before it, in the order known of them. ``isr`` and
    ``log_ends`` are the last known ones. ``isr_joins`` has when (ms) which replica of the target
    joined the ISR; ``joined`` counts them all. Times in ms: ``since_ms`` when it was first
    observed, ``progressed_ms`` when it last made progress, ``unlisted_ms`` since when the
    controller no longer lists it (None: it does) though its end is not certain.
    """

    first: ReassignmentRecord
    observations: list[ReassignmentRecord]
    since_ms: int
    progressed_ms: int
    original: tuple[int, ...]
    isr: tuple[int, ...]
    log_ends: dict[int, int]
    isr_joins: tuple[tuple[int, int], ...] = ()
    joined: int = 0
    unlisted_ms: int | None = None

    @property
    def latest(self) -> ReassignmentRecord:
        """Its last observation."""
        return self.observations[-1]

    def age_seconds(self, now_ms: int) -> float:
        """Return the seconds since it was first observed."""
        return max(0, now_ms - self.since_ms) / 1000

    def idle_seconds(self, now_ms: int) -> float:
        """Return the seconds since it last made progress."""
        return max(0, now_ms - self.progressed_ms) / 1000

    def phase(self, cluster: ClusterRecord | None) -> str:
        """Return the phase: ``controllers.phase``, or ``propagating`` once it is not listed."""
        if self.unlisted_ms is not None:
            return "propagating"
        return controllers.phase(self.latest, cluster)

    def add(self, observation: ReassignmentRecord, cluster: ClusterRecord | None) -> None:
        """Add another observation.

        Progress is another target, a required replica that joined the ISR, or one out of it that
        copied. An observation older than earlier ones means that the clock was set back.
        """
        before = self.latest
        joined = sorted(set(observation.isr) - set(self.isr)) if self.isr else []
        waited_for = controllers.missing_from_isr(before, cluster)
        if (
            _replica_sets(before) != _replica_sets(observation)
            or not controllers.required_isr(observation, cluster).isdisjoint(joined)
            or any(self._copied(observation, replica) for replica in waited_for)
        ):
            self.progressed_ms = observation.as_of_ms
        if observation.as_of_ms <= before.as_of_ms:
            self.observations = [
                one for one in self.observations if one.as_of_ms < observation.as_of_ms
            ]
            self.since_ms = min(self.since_ms, observation.as_of_ms)
            self.progressed_ms = min(self.progressed_ms, observation.as_of_ms)
        self.observations.append(_sharing(before, observation))
        lasting = controllers.target(observation)
        joins = tuple((observation.as_of_ms, broker) for broker in joined if broker in lasting)
        self.isr_joins = (*self.isr_joins, *joins)[-JOINS:]
        self.joined += len(joins)
        self.isr = observation.isr or self.isr
        self.log_ends.update(observation.log_ends)
        self.unlisted_ms = None

    def thin(self, most: int) -> None:
        """Keep at most ``most`` observations of the last HISTORY_MS; the newest half all stay."""
        observations = self.observations
        if (
            len(observations) <= most
            and observations[-1].as_of_ms - observations[0].as_of_ms <= HISTORY_MS
        ):
            return
        times = [observation.as_of_ms for observation in observations]
        # An eighth fewer than allowed, so that the next observations need no thinning.
        dense, sparse = most // 2, most // 2 - most // 8
        self.observations = [
            observations[index] for index in kept_points(times, dense, sparse, HISTORY_MS)
        ]

    def _copied(self, observation: ReassignmentRecord, replica: int) -> bool:
        before, now = self.log_ends.get(replica), observation.log_ends.get(replica)
        return before is not None and now is not None and now > before


@dataclass(slots=True)
class ReassignmentTracker:
    """The ongoing reassignments, the cluster around them, and the last ones that ended.

    ``quorum_changed_ms`` is when another controller was first seen active. ``ended_counts`` counts
    all ended ones by outcome; ``kept`` is how many are kept.
    """

    ongoing: dict[TopicPartition, TrackedReassignment] = field(default_factory=dict)
    cluster: ClusterRecord | None = None
    quorum_changed_ms: int | None = None
    ended: list[EndedReassignment] = field(default_factory=list)
    ended_counts: Counter[str] = field(default_factory=Counter)
    kept: int = 50
    _quorum: tuple[int, int] | None = None

    def apply_cluster(self, observation: ClusterRecord) -> None:
        """Apply a round's observation of the cluster."""
        self.cluster = observation
        if self.quorum_changed_ms is not None:  # later only if the clock was set back since
            self.quorum_changed_ms = min(self.quorum_changed_ms, observation.as_of_ms)
        if observation.quorum_leader is None or observation.quorum_epoch is None:
            return
        quorum = (observation.quorum_leader, observation.quorum_epoch)
        if self._quorum not in (None, quorum):
            self.quorum_changed_ms = observation.as_of_ms
        self._quorum = quorum

    def apply(self, observation: ReassignmentRecord) -> EndedReassignment | None:
        """Apply an observation of a partition that the controller lists as reassigned.

        Its ``since_ms`` and ``original``, known from an earlier run of the service, count if the
        reassignment is new to this one. Observations count in order of their arrival. Returns the
        reassignment that must have ended before if this is another one, else None.
        """
        partition = observation.topic_partition
        tracked = self.ongoing.get(partition)
        ended = None
        if tracked is not None and ends.is_another_reassignment(
            tracked.latest, tracked.original, observation, self.cluster
        ):
            base = controllers.reverted(observation)
            reached = set(base) == set(controllers.target(tracked.latest))
            # Without a replica that is gone, the same is seen of one that completed before the next
            # began, and of one whose target was changed before the added replicas got in sync.
            unclear = reached and set(observation.replicas) >= set(tracked.latest.replicas)
            left = controllers.target(tracked.latest) if reached else base
            ended = self._ended(tracked, left or None, observation.as_of_ms, unclear=unclear)
            tracked = None
        if tracked is None:
            at_ms, since_ms, original = (
                observation.as_of_ms,
                observation.since_ms,
                observation.original,
            )
            self.ongoing[partition] = TrackedReassignment(
                first=observation,
                observations=[observation],
                since_ms=at_ms if since_ms is None else min(since_ms, at_ms),
                progressed_ms=at_ms,
                original=controllers.reverted(observation) if original is None else original,
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
        """Apply that a partition is not listed, and its metadata (None: the topic is gone).

        Returns how its reassignment ended. Returns None if there is none, and while the metadata
        may be from before the end: it is then ``unlisted`` until this is called with the end's
        metadata, or SETTLED_MS after the first call; or OLDER_MS if the metadata can only be of
        a later topic of that name. If the caller is ``certain`` of the end, nothing waits.
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
        self,
        tracked: TrackedReassignment,
        replicas: tuple[int, ...] | None,
        at_ms: int,
        *,
        unclear: bool = False,
    ) -> EndedReassignment:
        ended = ends.ended(tracked.latest, tracked.original, replicas, tracked.since_ms, at_ms)
        if unclear and ended.outcome == "completed":
            ended = changed(ended, outcome="superseded")
        self.ended = [*self.ended, ended][-self.kept :]
        self.ended_counts[ended.outcome] += 1
        return ended


def _replica_sets(observation: ReassignmentRecord) -> tuple[tuple[int, ...], ...]:
    return observation.replicas, observation.adding, observation.removing


def _sharing(before: ReassignmentRecord, observation: ReassignmentRecord) -> ReassignmentRecord:
    """Return the observation with the equal values of the one before, which saves memory."""
    alike = {
        name: getattr(before, name)
        for name in _SHARED
        if getattr(before, name) == getattr(observation, name)
    }
    return changed(observation, **alike)
