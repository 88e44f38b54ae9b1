"""Replication throttles: whom they hold back, and which of them nobody needs any more.

A rate is a broker's, in bytes a second: one for what it sends as a leader, one for what it
fetches as a follower. It holds for the replicas that a topic lists, and delays those that are out
of sync only; what in-sync replicas fetch is counted all the same (KIP-73).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking.observation import (
    BrokerObservation,
    ClusterObservation,
    TopicThrottle,
)

#: A throttle without a movement is orphaned after this time if nothing at all is in movement, ...
ORPHANED_MS = 600_000
#: ... and after this time if something else is: whoever moves many topics under one throttle takes
#: it off when the last of them is done.
ORPHANED_BESIDE_MS = 3_600_000
#: Kafka's default of the rates, and anything near it, holds nobody back.
_NO_RATE = 1 << 62
#: How ``ClusterObservation.missing`` begins to tell of throttles that couldn't be asked for.
_UNTOLD = "throttles of"


class OrphanedThrottle(NamedTuple):
    """A throttle that no movement needs: of a ``topic`` or a ``broker``.

    ``what``: its configs as they are set. ``since_ms``: since when it was seen without a movement.
    """

    kind: str
    name: str
    what: str
    since_ms: int
    advice: str


def throttled_leaders(
    throttle: TopicThrottle, partition: int, brokers: Collection[int]
) -> frozenset[int]:
    """Tell which of some brokers are throttled as leader of a topic's partition."""
    return _listed(throttle.leader, partition, brokers)


def throttled_followers(
    throttle: TopicThrottle, partition: int, brokers: Collection[int]
) -> frozenset[int]:
    """Tell which of some brokers are throttled as followers of a topic's partition."""
    return _listed(throttle.follower, partition, brokers)


def leader_rate(
    cluster: ClusterObservation | None, partition: TopicPartition, broker: int
) -> int | None:
    """Give the rate (bytes/s) at which a broker sends a partition; None if nothing limits it."""
    throttle, observation = _of(cluster, partition, broker)
    if throttle is None or observation is None or not _limits(observation.leader_rate):
        return None
    return (
        observation.leader_rate
        if throttled_leaders(throttle, partition.partition, (broker,))
        else None
    )


def follower_rate(
    cluster: ClusterObservation | None, partition: TopicPartition, broker: int
) -> int | None:
    """Give the rate (bytes/s) at which a broker fetches a partition; None if nothing limits it."""
    throttle, observation = _of(cluster, partition, broker)
    if throttle is None or observation is None or not _limits(observation.follower_rate):
        return None
    listed = throttled_followers(throttle, partition.partition, (broker,))
    return observation.follower_rate if listed else None


def throttles_known(cluster: ClusterObservation | None, brokers: Collection[int]) -> bool:
    """Tell whether throttles could be asked for, of topics and of these brokers."""
    if cluster is None or cluster.brokers is None:
        return False
    return not _untold(cluster, "topic", "") and not any(
        _untold(cluster, "broker", str(broker)) for broker in brokers
    )


@dataclass(slots=True)
class ThrottleWatch:
    """Since when each throttle is there without a movement that it could be for (ms)."""

    _since_ms: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    _moved_ms: int | None = None

    def apply(
        self, cluster: ClusterObservation, moving: Mapping[TopicPartition, Collection[int]]
    ) -> None:
        """Take a look at the throttles, and the partitions in movement with their replicas.

        Those that couldn't be asked for stay as they were. Nothing has been there since a time
        that is yet to come, as there may be after a clock was set back.
        """
        as_of_ms = cluster.as_of_ms
        if moving or (self._moved_ms is not None and self._moved_ms > as_of_ms):
            self._moved_ms = as_of_ms
        if cluster.brokers is None:
            return
        busy = {partition.topic for partition in moving}
        kept = {
            key: known
            for key, known in self._since_ms.items()
            if key[1] not in busy and _untold(cluster, *key)
        }
        self._since_ms = kept | {
            (kind, name): (min(as_of_ms, self._since_ms.get((kind, name), (as_of_ms, ""))[0]), what)
            for kind, name, what in unused_throttles(cluster, moving)
        }

    def orphaned(self, now_ms: int) -> tuple[OrphanedThrottle, ...]:
        """List the throttles that are orphaned by now."""
        found = []
        for (kind, name), (since_ms, what) in sorted(self._since_ms.items()):
            quiet_ms = max(since_ms, self._moved_ms or 0)
            if now_ms - quiet_ms >= ORPHANED_MS or now_ms - since_ms >= ORPHANED_BESIDE_MS:
                advice = removal(kind, name)
                found.append(OrphanedThrottle(kind, name, what, since_ms, advice))
        return tuple(found)


def unused_throttles(
    cluster: ClusterObservation, moving: Mapping[TopicPartition, Collection[int]]
) -> tuple[tuple[str, str, str], ...]:
    """List (kind, name, what is set) of throttles that no movement of this moment is behind.

    Topics none of whose partitions move; brokers that hold no replica of one that does.
    """
    topics = {partition.topic for partition in moving}
    busy = {broker for replicas in moving.values() for broker in replicas}
    found = []
    for number, broker in sorted((cluster.brokers or {}).items()):
        what = ", ".join(
            f"{config}={rate}"
            for config, rate in (
                ("leader.replication.throttled.rate", broker.leader_rate),
                ("follower.replication.throttled.rate", broker.follower_rate),
            )
            if _limits(rate)
        )
        if what and number not in busy:
            found.append(("broker", str(number), what))
    for topic, throttle in sorted(cluster.throttles.items()):
        what = ", ".join(
            f"{config}={listed}"
            for config, listed in (
                ("leader.replication.throttled.replicas", throttle.leader),
                ("follower.replication.throttled.replicas", throttle.follower),
            )
            if listed.strip() not in ("", "none")
        )
        if what and topic not in topics:
            found.append(("topic", topic, what))
    return tuple(found)


def removal(kind: str, name: str) -> str:
    """Say how an operator takes a throttle off."""
    configs = "rate" if kind == "broker" else "replicas"
    return (
        f"remove it: kafka-configs.sh --entity-type {kind}s --entity-name {name} --alter "
        f"--delete-config leader.replication.throttled.{configs},"
        f"follower.replication.throttled.{configs}"
    )


def _untold(cluster: ClusterObservation, kind: str, name: str) -> bool:
    """Tell whether throttles of topics, or of a broker, couldn't be asked for."""
    what = f"{_UNTOLD} topics" if kind == "topic" else f"{_UNTOLD} broker {name}"
    return any(told.partition(":")[0] == what for told in cluster.missing)


def _limits(rate: int | None) -> bool:
    return rate is not None and rate < _NO_RATE


def _of(
    cluster: ClusterObservation | None, partition: TopicPartition, broker: int
) -> tuple[TopicThrottle | None, BrokerObservation | None]:
    if cluster is None or cluster.brokers is None:
        return None, None
    return cluster.throttles.get(partition.topic), cluster.brokers.get(broker)


def _listed(config: str, partition: int, brokers: Collection[int]) -> frozenset[int]:
    text = config.strip()
    if text == "*":
        return frozenset(brokers)
    return frozenset(brokers) & _parse(text).get(partition, frozenset())


@lru_cache(maxsize=512)
def _parse(config: str) -> dict[int, frozenset[int]]:
    """Read ``partition:broker,…``; what isn't of that form is left out, as ``none`` is."""
    found: dict[int, set[int]] = {}
    for pair in config.split(","):
        partition, _, broker = pair.strip().partition(":")
        if _is_id(partition) and _is_id(broker):
            found.setdefault(int(partition), set()).add(int(broker))
    return {partition: frozenset(listed) for partition, listed in found.items()}


def _is_id(text: str) -> bool:
    return text.isdecimal() and len(text) <= 10  # an int32; far longer ones int() refuses
