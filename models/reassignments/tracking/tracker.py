"""Partitions in movement over time: since when, how far they got, and how they ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from caughtup.models.histories.thinning import kept_points
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking import controllers, ends
from caughtup.models.reassignments.tracking.ends import OUTCOMES, EndedMovement
from caughtup.models.reassignments.tracking.observation import ClusterLook, PartitionLook

__all__ = ["OUTCOMES", "EndedMovement", "ReassignmentTracker", "TrackedMovement"]

#: How long looks at a movement are kept, in ms; how many of one, and of all that move at once:
#: a look takes about a kilobyte.
HISTORY_MS = 15 * 60_000
LOOKS = 240
LOOKS_OF_ALL = 100_000
#: Of one movement at least so many, however many move.
LEAST_LOOKS = 8
#: How many of the last joins are kept of a movement.
JOINS = 100
#: After so long, in ms, what the brokers show of a movement that isn't listed is its end; and
#: it is another topic's where it can't be.
SETTLED_MS = 30_000
OLDER_MS = 10 * 60_000
_WAITS_MS = {"over": 0, "unclear": SETTLED_MS, "older": OLDER_MS}
_SHARED = ("replicas", "adding", "removing", "isr", "log_ends", "sizes")


@dataclass(slots=True)
class TrackedMovement:
    """A movement over time.

    ``first``: the first look at it. ``looks``: the last ones, oldest first; older ones are
    sparser. ``original``: the replicas that there were before it, in the order known of them.
    ``isr`` and ``log_ends``: the last ones that are known. ``isr_joins``: when which replica of
    the target came into the ISR; ``joined`` counts them all. Times in ms: ``since_ms`` when it
    was first seen, ``progressed_ms`` when it last got anywhere, ``unlisted_ms`` since when the
    controller no longer lists it (None: it does) though its end isn't certain.
    """

    first: PartitionLook
    looks: list[PartitionLook]
    since_ms: int
    progressed_ms: int
    original: tuple[int, ...]
    isr: tuple[int, ...]
    log_ends: dict[int, int]
    isr_joins: tuple[tuple[int, int], ...] = ()
    joined: int = 0
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

    def add(self, look: PartitionLook, cluster: ClusterLook | None) -> None:
        """Take another look at it.

        Progress is another target, a needed replica that came into the ISR, or one out of it
        that copied. A look that is older than those before it tells that the clock was set back.
        """
        before = self.latest
        joined = sorted(set(look.isr) - set(self.isr)) if self.isr else []
        waited_for = controllers.pending(before, cluster)
        if (
            _shape(before) != _shape(look)
            or not controllers.needed(look, cluster).isdisjoint(joined)
            or any(self._copied(look, replica) for replica in waited_for)
        ):
            self.progressed_ms = look.as_of_ms
        if look.as_of_ms <= before.as_of_ms:
            self.looks = [one for one in self.looks if one.as_of_ms < look.as_of_ms]
            self.since_ms = min(self.since_ms, look.as_of_ms)
            self.progressed_ms = min(self.progressed_ms, look.as_of_ms)
        self.looks.append(_sharing(before, look))
        lasting = controllers.target(look)
        joins = tuple((look.as_of_ms, broker) for broker in joined if broker in lasting)
        self.isr_joins = (*self.isr_joins, *joins)[-JOINS:]
        self.joined += len(joins)
        self.isr = look.isr or self.isr
        self.log_ends.update(look.log_ends)
        self.unlisted_ms = None

    def thin(self, most: int) -> None:
        """Keep no more than so many looks, and none that is too old; the newest half all stay."""
        looks = self.looks
        if len(looks) <= most and looks[-1].as_of_ms - looks[0].as_of_ms <= HISTORY_MS:
            return
        times = [look.as_of_ms for look in looks]
        # An eighth fewer than there may be: it is then not done again at every look.
        dense, sparse = most // 2, most // 2 - most // 8
        self.looks = [looks[index] for index in kept_points(times, dense, sparse, HISTORY_MS)]

    def _copied(self, look: PartitionLook, replica: int) -> bool:
        before, now = self.log_ends.get(replica), look.log_ends.get(replica)
        return before is not None and now is not None and now > before


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
        if self.quorum_changed_ms is not None:  # later only if the clock was set back since
            self.quorum_changed_ms = min(self.quorum_changed_ms, look.as_of_ms)
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
    ) -> EndedMovement | None:
        """Take a look at a partition that the controller lists as in movement.

        ``since_ms`` and ``original`` are what an earlier run of the service knew of it; they
        count where this one doesn't know the movement yet. Looks count in the order in which
        they come. Give the movement that must have ended before, where it is another one.
        """
        tracked = self.moving.get(look.partition)
        ended = None
        if tracked is not None and ends.is_another_movement(
            tracked.latest, tracked.original, look, self.cluster
        ):
            base = controllers.reverted(look)
            reached = set(base) == set(controllers.target(tracked.latest))
            shown = controllers.target(tracked.latest) if reached else base
            ended = self._ended(tracked, shown or None, look.as_of_ms)
            tracked = None
        if tracked is None:
            since = look.as_of_ms if since_ms is None else min(since_ms, look.as_of_ms)
            before = controllers.reverted(look) if original is None else original
            self.moving[look.partition] = TrackedMovement(
                first=look,
                looks=[look],
                since_ms=since,
                progressed_ms=look.as_of_ms,
                original=before,
                isr=look.isr,
                log_ends=dict(look.log_ends),
            )
            return ended
        tracked.add(look, self.cluster)
        tracked.thin(max(LEAST_LOOKS, min(LOOKS, LOOKS_OF_ALL // len(self.moving))))
        return None

    def unlisted(self, partition: TopicPartition, at_ms: int) -> None:
        """Take that the controller no longer lists a partition, before its end is certain."""
        tracked = self.moving.get(partition)
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
    ) -> EndedMovement | None:
        """Take that a movement isn't listed, and what the brokers show (None: the topic is gone).

        Give how it ended. None is of one that isn't known, and while a broker may show what was
        before the end: it is then ``unlisted`` until this is called again with what is the end,
        or SETTLED_MS after the first call; OLDER_MS where it cannot be the end, but only that of
        a topic which took the name. Nothing waits where the caller is ``certain`` of the end.
        """
        tracked = self.moving.get(partition)
        if tracked is None or replicas == ():
            return None
        self.unlisted(partition, at_ms)
        waited_ms = at_ms - (at_ms if tracked.unlisted_ms is None else tracked.unlisted_ms)
        if replicas is not None and not certain:
            shown = ends.shown(tracked.looks, self.cluster, replicas, isr, leader_epoch)
            if waited_ms < _WAITS_MS[shown]:
                return None
            if shown == "older":
                replicas = None
        del self.moving[partition]
        return self._ended(tracked, replicas, at_ms)

    def _ended(
        self, tracked: TrackedMovement, replicas: tuple[int, ...] | None, at_ms: int
    ) -> EndedMovement:
        latest = tracked.latest
        outcome = "vanished"
        if replicas is not None:
            outcome = ends.outcome(latest, tracked.original, replicas)
        target = controllers.target(latest)
        ended = EndedMovement(
            latest.partition, outcome, at_ms, target, replicas, tracked.original, tracked.since_ms
        )
        self.ended = [*self.ended, ended][-self.kept :]
        self.ended_counts[outcome] += 1
        return ended


def _shape(look: PartitionLook) -> tuple[tuple[int, ...], ...]:
    return look.replicas, look.adding, look.removing


def _sharing(before: PartitionLook, look: PartitionLook) -> PartitionLook:
    """Give the look with the parts of the one before it that are alike, which saves memory."""
    alike = {
        name: getattr(before, name)
        for name in _SHARED
        if getattr(before, name) == getattr(look, name)
    }
    return replace(look, **alike)
