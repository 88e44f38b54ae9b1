"""Replication throttles that no reassignment needs any more, and since when."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.throttle_rates import is_limit, is_unanswered
from caughtup.models.records.reassignments import ClusterRecord

#: The time (ms) after which a throttle without a reassignment is orphaned if nothing is reassigned.
ORPHANED_MS = 600_000
#: The same if something else is reassigned: operators of many topics remove their throttle last.
ORPHANED_BESIDE_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class OrphanedThrottle:
    """A throttle of a ``topic`` or a ``broker`` that no reassignment needs.

    ``what`` has its configs as they are set, ``since_ms`` when it was first seen without one.
    """

    kind: str
    name: str
    what: str
    since_ms: int
    advice: str


@dataclass(slots=True)
class ThrottleWatch:
    """Since when (ms) each throttle has been without a reassignment that may need it."""

    _since_ms: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    _reassigned_ms: int | None = None

    def apply(
        self, cluster: ClusterRecord, ongoing: Mapping[TopicPartition, Collection[int]]
    ) -> None:
        """Apply the observed throttles, and the replicas of the partitions in movement.

        Throttles that could not be read stay as they were. Times in the future, which remain
        after a clock was set back, are replaced.
        """
        as_of_ms = cluster.as_of_ms
        if ongoing or (self._reassigned_ms is not None and self._reassigned_ms > as_of_ms):
            self._reassigned_ms = as_of_ms
        if cluster.brokers is None:
            return
        busy = {partition.topic for partition in ongoing}
        kept = {
            key: known
            for key, known in self._since_ms.items()
            if key[1] not in busy and is_unanswered(cluster, *key)
        }
        self._since_ms = kept | {
            (kind, name): (min(as_of_ms, self._since_ms.get((kind, name), (as_of_ms, ""))[0]), what)
            for kind, name, what in unused_throttles(cluster, ongoing)
        }

    def orphaned(self, now_ms: int) -> tuple[OrphanedThrottle, ...]:
        """Return the throttles that are orphaned at ``now_ms``, by kind and name."""
        found = []
        for (kind, name), (since_ms, what) in sorted(self._since_ms.items()):
            quiet_ms = max(since_ms, self._reassigned_ms or 0)
            if now_ms - quiet_ms >= ORPHANED_MS or now_ms - since_ms >= ORPHANED_BESIDE_MS:
                advice = removal(kind, name)
                found.append(OrphanedThrottle(kind, name, what, since_ms, advice))
        return tuple(found)


def unused_throttles(
    cluster: ClusterRecord, ongoing: Mapping[TopicPartition, Collection[int]]
) -> tuple[tuple[str, str, str], ...]:
    """Return (kind, name, configs) of the throttles that no reassignment needs now.

    These are topics without a partition in movement, and brokers without a replica of one.
    """
    topics = {partition.topic for partition in ongoing}
    busy = {broker for replicas in ongoing.values() for broker in replicas}
    found = []
    for number, broker in sorted((cluster.brokers or {}).items()):
        what = ", ".join(
            f"{config}={rate}"
            for config, rate in (
                ("leader.replication.throttled.rate", broker.leader_rate),
                ("follower.replication.throttled.rate", broker.follower_rate),
            )
            if is_limit(rate)
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
    """Return the advice how to remove a throttle."""
    configs = "rate" if kind == "broker" else "replicas"
    return (
        f"remove it: kafka-configs.sh --entity-type {kind}s --entity-name {name} --alter "
        f"--delete-config leader.replication.throttled.{configs},"
        f"follower.replication.throttled.{configs}"
    )
