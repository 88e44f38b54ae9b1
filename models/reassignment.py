"""Partitions in movement over time: since when, how far they got, and how they ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from caughtup.models import controllers
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignment_look import ClusterLook, PartitionLook
from caughtup.models.thinning import kept_points

#: How long looks at a movement are kept, in ms; how many of one, and of all that move at once.
HISTORY_MS = 15 * 60_000
LOOKS = 240
LOOKS_OF_ALL = 200_000
#: Of one movement at least so many, however many move.
LEAST_LOOKS = 24
OUTCOMES = ("completed", "cancelled", "superseded", "reverted-partial", "vanished")


@dataclass(slots=True)
class TrackedMovement:
    """A movement over time.

    ``first``: the first look at it. ``looks``: the last ones, oldest first; older ones are
    sparser. ``original``: the replicas that there were before it, in the order known of them.
    Times in ms: ``since_ms`` when it was first seen, ``progressed_ms`` when it last got anywhere,
    ``isr_joins`` when which broker was first seen in the ISR, ``unlisted_ms`` since when the
    controller no longer lists it (None: it does) though its end isn't certain.
    """

    first: PartitionLook
    looks: list[PartitionLook]
    since_ms: int
    progressed_ms: int
    original: tuple[int, ...]
    isr_joins: tuple[tuple[int, int], ...] = ()
    unlisted_ms: int | None = None

    @property
    def latest(self) -> PartitionLook:
        """The last look at it."""
        return self.looks[-1]

    def phase(self, cluster: ClusterLook | None) -> str:
        """Give the phase: ``controllers.phase``, or ``propagating`` once it isn't listed."""
        if self.unlisted_ms is not None:
            return "propagating"
        return controllers.phase(self.latest, cluster)


@dataclass(frozen=True, slots=True)
class EndedMovement:
    """A movement that is no longer listed, and how it ended (one of OUTCOMES).

    ``target``: the replicas it was to have at last. ``replicas``: those it has, None if the
    topic is gone. ``original``: those it had before.
    """

    partition: TopicPartition
    outcome: str
    at_ms: int
    target: tuple[int, ...]
    replicas: tuple[int, ...] | None
    original: tuple[int, ...]
    since_ms: int


@dataclass(slots=True)
class ReassignmentTracker:
    """Every partition in movement, the cluster around them, and the last ones that ended.

    ``quorum_changed_ms``: when another controller was first seen to be active. ``ended_counts``
    counts by outcome all that ended.
    """

    moving: dict[TopicPartition, TrackedMovement] = field(default_factory=dict)
    cluster: ClusterLook | None = None
    quorum_changed_ms: int | None = None
    ended: list[EndedMovement] = field(default_factory=list)
    ended_counts: Counter[str] = field(default_factory=Counter)
    kept: int = 50
    _quorum: tuple[int, int] | None = None

    def apply_cluster(self, look: ClusterLook) -> None:
        """Take a look at the cluster that all partitions of a round share."""
        self.cluster = look
        if look.quorum_leader is None or look.quorum_epoch is None:
            return
        quorum = (look.quorum_leader, look.quorum_epoch)
        if self._quorum not in (None, quorum):
            self.quorum_changed_ms = look.as_of_ms
        self._quorum = quorum

    def apply(
        self,
        look: PartitionLook,
        *,
        since_ms: int | None = None,
        original: tuple[int, ...] | None = None,
    ) -> None:
        """Take a look at a partition that the controller lists as in movement.

        ``since_ms`` and ``original`` are what an earlier run of the service knew of it; they
        count where this one doesn't know the movement yet. Looks count in the order in which
        they come: one that is older than those before it tells that the clock was set back.
        """
        tracked = self.moving.get(look.partition)
        if tracked is None:
            since = look.as_of_ms if since_ms is None else min(since_ms, look.as_of_ms)
            before = controllers.reverted(look) if original is None else original
            self.moving[look.partition] = TrackedMovement(
                look, [look], since, progressed_ms=look.as_of_ms, original=before
            )
            return
        latest = tracked.latest
        if _progressed(latest, look):
            tracked.progressed_ms = look.as_of_ms
        joined = sorted(set(look.isr) - set(latest.isr)) if latest.isr else []
        tracked.isr_joins += tuple((look.as_of_ms, broker) for broker in joined)
        tracked.unlisted_ms = None
        if look.as_of_ms <= latest.as_of_ms:
            tracked.looks = [one for one in tracked.looks if one.as_of_ms < look.as_of_ms]
            tracked.since_ms = min(tracked.since_ms, look.as_of_ms)
            tracked.progressed_ms = min(tracked.progressed_ms, look.as_of_ms)
        tracked.looks.append(look)
        self._thin(tracked)

    def unlisted(self, partition: TopicPartition, at_ms: int) -> None:
        """Take that the controller no longer lists a partition, before its end is certain."""
        tracked = self.moving.get(partition)
        if tracked is not None and tracked.unlisted_ms is None:
            tracked.unlisted_ms = at_ms

    def end(
        self,
        partition: TopicPartition,
        replicas: tuple[int, ...] | None,
        isr: tuple[int, ...],
        at_ms: int,
    ) -> EndedMovement | None:
        """Take the end of a movement: the replicas that it has now (None: the topic is gone).

        Give how it ended, or None of one that isn't known, or of which nothing can be told
        because there are no replicas.
        """
        if replicas == ():
            return None
        tracked = self.moving.pop(partition, None)
        if tracked is None:
            return None
        target = controllers.target(tracked.latest)
        outcome = _outcome(tracked, replicas)
        ended = EndedMovement(
            partition, outcome, at_ms, target, replicas, tracked.original, tracked.since_ms
        )
        self.ended = [*self.ended, ended][-self.kept :]
        self.ended_counts[outcome] += 1
        return ended

    def _thin(self, tracked: TrackedMovement) -> None:
        most = max(LEAST_LOOKS, min(LOOKS, LOOKS_OF_ALL // len(self.moving)))
        looks = tracked.looks
        if len(looks) <= most and looks[-1].as_of_ms - looks[0].as_of_ms <= HISTORY_MS:
            return
        times = [look.as_of_ms for look in looks]
        # An eighth fewer than there may be: it is then not done again at every look.
        dense, sparse = most // 2, most // 2 - most // 8
        tracked.looks = [looks[index] for index in kept_points(times, dense, sparse, HISTORY_MS)]


def _outcome(tracked: TrackedMovement, replicas: tuple[int, ...] | None) -> str:
    if replicas is None:
        return "vanished"
    latest = tracked.latest
    if replicas == controllers.target(latest):
        return "completed"
    # A broker that was added before it was there loses its place: only the set comes back.
    if set(replicas) == set(tracked.original):
        return "cancelled"
    if set(replicas) == set(controllers.reverted(latest)):
        return "reverted-partial"
    return "superseded"


def _progressed(before: PartitionLook, after: PartitionLook) -> bool:
    shape = (before.replicas, before.adding, before.removing)
    if shape != (after.replicas, after.adding, after.removing):
        return True
    if set(after.isr) - set(before.isr):
        return True
    return any(after.log_ends.get(r, 0) > before.log_ends.get(r, 0) for r in after.adding)


def offsets_remaining(look: PartitionLook) -> int | None:
    """Count the offsets that the furthest added replica has yet to copy; None if one is unknown."""
    head = look.log_ends.get(look.leader) if look.leader is not None else None
    if head is None or any(replica not in look.log_ends for replica in look.adding):
        return None
    return max((max(0, head - look.log_ends[replica]) for replica in look.adding), default=0)
