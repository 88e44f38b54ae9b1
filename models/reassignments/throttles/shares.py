"""Who shares a broker's replication throttle, and how long a copy may stand because of it.

A throttle is kept over a window of eleven seconds. A fetch that finds it used up gets nothing; one
that doesn't gets up to ``replica.fetch.max.bytes`` of a partition, however little was left. So a
copy moves in steps, each followed by a pause. What in-sync replicas of throttled partitions fetch
is never delayed, but counts: where that alone uses the rate up, copies get nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.throttles.rates import follower_rate, leader_rate
from caughtup.models.reassignments.throttles.shared_copies import Copy, CopyPace, Limit, sooner
from caughtup.models.reassignments.tracking.controllers import missing_from_isr
from caughtup.models.reassignments.tracking.observation import (
    ClusterObservation,
    PartitionObservation,
)
from caughtup.models.reassignments.tracking.tracker import TrackedReassignment

#: Kafka's default of ``replica.fetch.max.bytes``: what a copy gets of a partition at once.
FETCH_BYTES = 1 << 20
#: ``replication.quota.window.num`` and ``.size.seconds`` by default: after that a fetch counts no
#: more, so that a lone copy gets something at least so often (s).
QUOTA_SECONDS = 11.0
#: Bytes in one answer (``replica.fetch.response.max.bytes``): a rate below this a window is
#: exceeded in practice.
RESPONSE_BYTES = 10 * FETCH_BYTES
#: For so many windows a lone copy may stand at a throttle; so many more where copies compete. In
#: simulated competition few ever stood for as long.
WINDOWS_ALLOWED = 4
TURNS_ALLOWED = 8
#: The part of a rate that is used from which on it is what slows the copies down.
TIGHT = 0.6
#: Growth of logs is taken over this time, in ms; sizes may be missing at all but one of some looks.
GROWTH_MS = 90_000
RECENT_OBSERVATIONS = 6
#: The part of a rate that in-sync replicas are known to use from which on it starves the copies.
#: What else they fetch isn't known: partitions that don't move aren't looked at.
STARVED = 0.8


@dataclass(slots=True)
class Share:
    """What goes through one broker's throttle, in one direction, of partitions in movement.

    ``copies``: replicas out of sync that are held back by it. ``copied_bytes``: what they get of
    it, ``in_sync_bytes``: what in-sync replicas take, in bytes a second; both as far as known.
    """

    copies: int = 0
    copied_bytes: float = 0.0
    in_sync_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class ThrottleShares:
    """The shares by broker, as leaders and as followers.

    ``sooner``: by which factor a copy is there sooner than at its own pace, since others that are
    there before leave it their part.
    """

    leaders: Mapping[int, Share] = field(default_factory=dict)
    followers: Mapping[int, Share] = field(default_factory=dict)
    sooner: Mapping[Copy, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Throttle:
    """The tightest throttle on a copy: of which broker, in which direction, and who shares it.

    ``rate``: bytes a second. ``side``: ``leader`` or ``follower``.
    """

    broker: int
    side: str
    rate: int
    share: Share

    @property
    def copies(self) -> int:
        """How many copies share it, this one included."""
        return max(1, self.share.copies)

    @property
    def starved(self) -> bool:
        """Whether in-sync replicas are known to use up most of what there is, or all."""
        return self.share.in_sync_bytes >= max(1.0, STARVED * self.rate)

    @property
    def used_up(self) -> bool:
        """Whether in-sync replicas are known to use up all there is."""
        return self.share.in_sync_bytes >= max(1.0, float(self.rate))

    @property
    def tight(self) -> bool:
        """Whether so much of it is used that it is what limits the copies."""
        return self.share.copied_bytes + self.share.in_sync_bytes >= TIGHT * self.rate

    @property
    def patience_seconds(self) -> float:
        """How long a copy may stand for its share.

        Copies that come when a window is free use it up at once, and all wait for the next. Who
        comes first is chance, so that the more want what a window has, the more of them may pass.
        """
        window_bytes = max(1.0, self.rate * (QUOTA_SECONDS - 1))
        step = min(1.0, FETCH_BYTES / window_bytes)  # a window forgets what exceeded it, too
        turns = WINDOWS_ALLOWED + TURNS_ALLOWED * min(1.0, (self.copies - 1) * step)
        return QUOTA_SECONDS * max(1.0, self.copies * step) * turns


def throttle_shares(
    moving: Iterable[TrackedReassignment], cluster: ClusterObservation | None
) -> ThrottleShares:
    """Add up what goes through the throttles, and past them, of all partitions in movement."""
    leaders: dict[int, Share] = {}
    followers: dict[int, Share] = {}
    paces: dict[Copy, CopyPace] = {}
    throttled: dict[Copy, tuple[Throttle, ...]] = {}
    for movement in moving:
        observation = movement.observations[-1]
        partition, leader = observation.partition, observation.leader
        if leader is None:
            continue
        behind = frozenset(missing_from_isr(observation, cluster))
        comes = grown_bytes(movement.observations, leader)
        for replica in sorted(({*observation.isr} | behind) - {leader}):
            gets = grown_bytes(movement.observations, replica)
            if replica not in behind:  # what it got beyond what came, it got while it caught up
                gets = max(0.0, gets - comes) if replica in observation.adding else 0.0
            left = _bytes_left(movement.observations, leader, replica) if replica in behind else 0
            if left is not None and gets > 0:
                paces[partition, replica] = CopyPace(left, gets, comes)
            holding = []
            rate = leader_rate(cluster, partition, leader)
            if rate is not None:
                share = leaders.setdefault(leader, Share())
                holding.append(Throttle(leader, "leader", rate, share))
            rate = follower_rate(cluster, partition, replica)
            if rate is not None:
                share = followers.setdefault(replica, Share())
                holding.append(Throttle(replica, "follower", rate, share))
            for throttle in holding:
                throttle.share.copied_bytes += gets
                if replica in behind:
                    throttle.share.copies += 1
                else:
                    throttle.share.in_sync_bytes += comes
            throttled[partition, replica] = tuple(holding)
    limits: dict[Copy, list[Limit]] = {}
    for copy in paces:
        tight = [(one.side, one.broker) for one in throttled[copy] if one.tight]
        limits[copy] = tight or [("broker", copy[1])]
    return ThrottleShares(leaders, followers, sooner(paces, limits))


def throttles_on(
    partition: TopicPartition,
    leader: int | None,
    replica: int,
    cluster: ClusterObservation | None,
    shares: ThrottleShares,
) -> tuple[Throttle, ...]:
    """List the throttles that hold back a replica that is out of sync, the tightest first."""
    found = []
    if leader is not None:
        rate = leader_rate(cluster, partition, leader)
        if rate is not None:
            share = shares.leaders.get(leader, Share(copies=1))
            found.append(Throttle(leader, "leader", rate, share))
    rate = follower_rate(cluster, partition, replica)
    if rate is not None:
        share = shares.followers.get(replica, Share(copies=1))
        found.append(Throttle(replica, "follower", rate, share))
    return tuple(
        sorted(found, key=lambda one: (not one.starved, one.rate - one.share.in_sync_bytes))
    )


def _bytes_left(
    observations: Sequence[PartitionObservation], leader: int, replica: int
) -> int | None:
    """Tell how many bytes a replica has yet to get, as of the last look that knew both sizes."""
    for observation in reversed(observations[-RECENT_OBSERVATIONS:]):
        if leader in observation.sizes and replica in observation.sizes:
            return max(0, observation.sizes[leader] - observation.sizes[replica])
    return None


def grown_bytes(observations: Sequence[PartitionObservation], broker: int) -> float:
    """Give the bytes a second that a broker's log of a partition got over the last minute and a half.

    Where segments were deleted it is too low.
    """
    newest = newer = None
    grown, since_ms = 0, 0
    for observation in reversed(observations):
        size = observation.sizes.get(broker)
        if size is None:
            continue
        if newest is None or newer is None:
            newest = observation.as_of_ms
        else:
            grown += max(0, newer - size)
        newer, since_ms = size, observation.as_of_ms
        if newest - since_ms >= GROWTH_MS:
            break
    if newest is None or newest <= since_ms:
        return 0.0
    return grown * 1000 / (newest - since_ms)
