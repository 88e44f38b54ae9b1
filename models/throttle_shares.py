"""Who shares a broker's replication throttle, and how long a copy may stand because of it.

A throttle is kept over a window of eleven seconds. A fetch that finds it used up gets nothing; one
that doesn't gets up to ``replica.fetch.max.bytes`` of a partition, however little was left. So a
copy moves in steps, each followed by a pause. What in-sync replicas of throttled partitions fetch
is never delayed, but counts: where that alone uses the rate up, copies get nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from caughtup.models.controllers import pending
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignment import TrackedMovement
from caughtup.models.reassignment_look import ClusterLook, PartitionLook
from caughtup.models.throttles import follower_rate, leader_rate

#: Kafka's default of ``replica.fetch.max.bytes``: what a copy gets of a partition at once.
FETCH_BYTES = 1 << 20
#: ``replication.quota.window.num`` and ``.size.seconds`` by default: after that a fetch counts no
#: more, so that a lone copy gets something at least so often (s).
QUOTA_SECONDS = 11.0
#: Bytes in one answer (``replica.fetch.response.max.bytes``): a rate below this a window is
#: exceeded in practice.
RESPONSE_BYTES = 10 * FETCH_BYTES
#: The part of a rate that in-sync replicas are known to use from which on it starves the copies.
#: What else they fetch isn't known: partitions that don't move aren't looked at.
STARVED = 0.8


@dataclass(slots=True)
class Share:
    """What goes through one broker's throttle, in one direction, of partitions in movement.

    ``copies``: replicas out of sync that are held back by it. ``bytes_behind``: what they have
    yet to copy, as far as known. ``in_sync_bytes``: what in-sync replicas take of it, in bytes a
    second; a lower bound.
    """

    copies: int = 0
    bytes_behind: int = 0
    in_sync_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class ThrottleShares:
    """The shares by broker, as leaders and as followers."""

    leaders: Mapping[int, Share] = field(default_factory=dict)
    followers: Mapping[int, Share] = field(default_factory=dict)


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
    def starved(self) -> bool:
        """Whether in-sync replicas are known to use up what there is."""
        return self.share.in_sync_bytes >= max(1.0, STARVED * self.rate)

    @property
    def pause_seconds(self) -> float:
        """How long a copy may stand for its share, if nothing else uses the throttle."""
        step = FETCH_BYTES / self.rate if self.rate > 0 else QUOTA_SECONDS
        return max(1, self.share.copies) * min(step, QUOTA_SECONDS)


def throttle_shares(
    moving: Iterable[TrackedMovement], cluster: ClusterLook | None
) -> ThrottleShares:
    """Add up what goes through the throttles of all partitions in movement."""
    leaders: dict[int, Share] = {}
    followers: dict[int, Share] = {}
    if cluster is None or not cluster.throttles:
        return ThrottleShares(leaders, followers)
    for movement in moving:
        look = movement.looks[-1]
        if look.leader is None or look.partition.topic not in cluster.throttles:
            continue
        behind = set(pending(look, cluster))
        comes = written_bytes(movement.looks)
        sends = leader_rate(cluster, look.partition, look.leader) is not None
        for replica in sorted({*look.isr, *behind} - {look.leader}):
            gets = follower_rate(cluster, look.partition, replica) is not None
            for share in (
                *((leaders.setdefault(look.leader, Share()),) if sends else ()),
                *((followers.setdefault(replica, Share()),) if gets else ()),
            ):
                if replica in behind:
                    share.copies += 1
                    share.bytes_behind += _bytes_behind(look, replica)
                else:
                    share.in_sync_bytes += comes
    return ThrottleShares(leaders, followers)


def throttles_on(
    partition: TopicPartition,
    leader: int | None,
    replica: int,
    cluster: ClusterLook | None,
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


def written_bytes(looks: list[PartitionLook]) -> float:
    """Give the bytes a second that the leader's log got over the last minute of looks.

    Where segments were deleted it is too low.
    """
    last = looks[-1]
    grown, since_ms, newer = 0, last.as_of_ms, None
    for look in reversed(looks):
        size = None if look.leader is None else look.sizes.get(look.leader)
        if look.leader != last.leader or size is None:
            continue
        if newer is not None:
            grown += max(0, newer - size)
        else:
            last = look
        newer, since_ms = size, look.as_of_ms
        if last.as_of_ms - since_ms >= 60_000:
            break
    seconds = (last.as_of_ms - since_ms) / 1000
    return grown / seconds if seconds > 0 else 0.0


def _bytes_behind(look: PartitionLook, replica: int) -> int:
    if look.leader is None or look.leader not in look.sizes:
        return 0
    return max(0, look.sizes[look.leader] - look.sizes.get(replica, 0))
