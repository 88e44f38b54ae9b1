"""The replication throttles on a copy, and how long it may stand because of them.

A rate is a broker's, in bytes a second: one for what it sends as a leader, one for what it
fetches as a follower. It holds for the replicas that a topic lists, and delays those that are out
of sync only; what in-sync replicas fetch is counted all the same (KIP-73).

A throttle is kept over a window of eleven seconds. A fetch that finds it used up gets nothing; one
that doesn't gets up to ``replica.fetch.max.bytes`` of a partition, however little was left. So a
copy moves in steps, each followed by a pause.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeGuard

from caughtup.models.ids import TopicPartition
from caughtup.models.records.reassignments import ClusterRecord, ThrottleRecord

#: Rates from here on, such as Kafka's default, limit no copy.
_NO_RATE = 1 << 62
#: How ``ClusterRecord.missing`` names throttles that could not be read.
_THROTTLES_OF = "throttles of"
#: Kafka's default of ``replica.fetch.max.bytes``, the most of a partition in one fetch.
FETCH_BYTES = 1 << 20
#: Kafka's default throttle window (``replication.quota.window.num`` times ``.size.seconds``), in s.
#: Older fetches no longer count, so a lone copy gets some bytes at least this often.
QUOTA_SECONDS = 11.0
#: Bytes in one response (``replica.fetch.response.max.bytes``): a rate below this per window is
#: exceeded in practice.
RESPONSE_BYTES = 10 * FETCH_BYTES
#: The windows for which a lone copy may stand at a throttle, and how many more if copies compete.
#: In simulated competition few copies ever stood for as long.
WINDOWS_ALLOWED = 4
TURNS_ALLOWED = 8
#: From this used part of a rate on, the throttle is what slows the copies down.
TIGHT = 0.6
#: From this part of a rate on, used by in-sync replicas, the throttle starves the copies. Their
#: other fetches are unknown: partitions without a reassignment are not observed.
STARVED = 0.8
#: A replica of a partition.
Copy = tuple[TopicPartition, int]


@dataclass(slots=True)
class Share:
    """The traffic of partitions in movement through one broker's throttle, in one direction.

    ``copies`` counts the replicas out of sync that it limits. ``copied_bytes`` is what they get
    and ``in_sync_bytes`` what in-sync replicas take, in bytes a second, as far as known.
    """

    copies: int = 0
    copied_bytes: float = 0.0
    in_sync_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class ThrottleShares:
    """The shares by broker, as leaders and as followers.

    ``time_factors``: by which factor a copy is there sooner than at its own pace, since others that are
    there before leave it their part.
    """

    leaders: Mapping[int, Share] = field(default_factory=dict)
    followers: Mapping[int, Share] = field(default_factory=dict)
    time_factors: Mapping[Copy, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Throttle:
    """A throttle on a copy: its broker, its side and its traffic.

    ``rate`` is in bytes a second; ``side`` is ``leader`` or ``follower``.
    """

    broker: int
    side: str
    rate: int
    share: Share

    @property
    def copies(self) -> int:
        """The number of copies that share it, this one included."""
        return max(1, self.share.copies)

    @property
    def starved(self) -> bool:
        """Whether in-sync replicas are known to use up most of the rate, or all of it."""
        return self.share.in_sync_bytes >= max(1.0, STARVED * self.rate)

    @property
    def used_up(self) -> bool:
        """Whether in-sync replicas are known to use up the whole rate."""
        return self.share.in_sync_bytes >= max(1.0, float(self.rate))

    @property
    def tight(self) -> bool:
        """Whether enough of the rate is used that it limits the copies."""
        return self.share.copied_bytes + self.share.in_sync_bytes >= TIGHT * self.rate

    @property
    def patience_seconds(self) -> float:
        """The seconds for which a copy may stand before it gets its share.

        Copies that fetch while a window is free use it up at once, and all wait for the next one.
        Chance decides which copy is first, so the more compete, the more windows one may miss.
        """
        window_bytes = max(1.0, self.rate * (QUOTA_SECONDS - 1))
        step = min(1.0, FETCH_BYTES / window_bytes)  # a window forgets what exceeded it, too
        turns = WINDOWS_ALLOWED + TURNS_ALLOWED * min(1.0, (self.copies - 1) * step)
        return QUOTA_SECONDS * max(1.0, self.copies * step) * turns

    def figures(self) -> dict[str, int | str]:
        """Return its broker, its rate and its known traffic (bytes a second), as evidence."""
        return {
            "throttled_broker": self.broker,
            "throttled_as": self.side,
            "throttle_bytes_per_second": self.rate,
            "in_sync_bytes_per_second": round(self.share.in_sync_bytes),
            "copied_bytes_per_second": round(self.share.copied_bytes),
            "copies_sharing_it": self.share.copies,
        }


def throttled_leaders(
    throttle: ThrottleRecord, partition: int, brokers: Collection[int]
) -> frozenset[int]:
    """Return which of some brokers are throttled as leader of a topic's partition."""
    return _listed(throttle.leader, partition, brokers)


def throttled_followers(
    throttle: ThrottleRecord, partition: int, brokers: Collection[int]
) -> frozenset[int]:
    """Return which of some brokers are throttled as followers of a topic's partition."""
    return _listed(throttle.follower, partition, brokers)


def rates_on(
    partition: TopicPartition, leader: int | None, replica: int, cluster: ClusterRecord | None
) -> Iterator[tuple[str, int, int]]:
    """Yield (``leader`` or ``follower``, broker, bytes/s) of each throttle on a replica's copy."""
    throttle = None if cluster is None else cluster.throttles.get(partition.topic)
    if throttle is None or cluster is None or cluster.brokers is None:
        return
    number, brokers = partition.partition, cluster.brokers
    if leader is not None and leader in brokers:
        rate = brokers[leader].leader_rate
        if is_limit(rate) and throttled_leaders(throttle, number, (leader,)):
            yield "leader", leader, rate
    if replica in brokers:
        rate = brokers[replica].follower_rate
        if is_limit(rate) and throttled_followers(throttle, number, (replica,)):
            yield "follower", replica, rate


def throttles_known(cluster: ClusterRecord | None, brokers: Collection[int]) -> bool:
    """Return whether throttles could be asked for, of topics and of these brokers."""
    if cluster is None or cluster.brokers is None:
        return False
    return not is_unanswered(cluster, "topic", "") and not any(
        is_unanswered(cluster, "broker", str(broker)) for broker in brokers
    )


def throttles_on(
    partition: TopicPartition,
    leader: int | None,
    replica: int,
    cluster: ClusterRecord | None,
    shares: ThrottleShares,
) -> tuple[Throttle, ...]:
    """List the throttles that hold back a replica that is out of sync, the tightest first."""
    found = []
    for side, broker, rate in rates_on(partition, leader, replica, cluster):
        known = shares.leaders if side == "leader" else shares.followers
        found.append(Throttle(broker, side, rate, known.get(broker, Share(copies=1))))
    return tuple(
        sorted(found, key=lambda one: (not one.starved, one.rate - one.share.in_sync_bytes))
    )


def is_unanswered(cluster: ClusterRecord, kind: str, name: str) -> bool:
    """Return whether the throttles of topics, or of a broker, could not be read."""
    what = f"{_THROTTLES_OF} topics" if kind == "topic" else f"{_THROTTLES_OF} broker {name}"
    return any(missing.partition(":")[0] == what for missing in cluster.missing)


def is_limit(rate: int | None) -> TypeGuard[int]:
    """Return whether a rate (bytes/s) limits copies."""
    return rate is not None and rate < _NO_RATE


def _listed(config: str, partition: int, brokers: Collection[int]) -> frozenset[int]:
    text = config.strip()
    if text == "*":
        return frozenset(brokers)
    return frozenset(brokers) & _parse(text).get(partition, frozenset())


@lru_cache(maxsize=512)
def _parse(config: str) -> dict[int, frozenset[int]]:
    """Return the brokers by partition of ``partition:broker,…``, without what has another form."""
    found: dict[int, set[int]] = {}
    for pair in config.split(","):
        partition, _, broker = pair.strip().partition(":")
        if _is_id(partition) and _is_id(broker):
            found.setdefault(int(partition), set()).add(int(broker))
    return {partition: frozenset(listed) for partition, listed in found.items()}


def _is_id(text: str) -> bool:
    return text.isdecimal() and len(text) <= 10  # an int32; far longer ones int() refuses
