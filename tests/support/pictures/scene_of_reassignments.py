"""Partitions in movement: one stalled by a full disk, others that progress."""

from __future__ import annotations

from msgspec.structs import replace

from caughtup.models.ids import TopicPartition
from caughtup.models.records.reassignments import (
    BrokerRecord,
    ClusterRecord,
    ReassignmentRecord,
    ThrottleRecord,
)
from tests.support.pictures.played_cluster import MINUTE, NOW_MS, SECOND, Cluster

_RECORD_BYTES = 640
_BEGAN_MS = NOW_MS - 26 * MINUTE
_BROKERS = 6
_FULL = 6


def play_reassignments() -> Cluster:
    """Simulate the reassignment of a topic to new brokers for half an hour."""
    cluster = Cluster(45)
    cluster.reads("orders-audit", cluster.topic("orders", 3, 900.0))
    cluster.players.append(lambda now_ms: observe_moves(cluster, now_ms))
    for number in range(3):
        cluster.players.append(_ended(cluster, number, NOW_MS - (3 + 4 * number) * MINUTE))
    cluster.play()
    return cluster


def observe_moves(cluster: Cluster, now_ms: int) -> None:
    """Observe the brokers and four partitions in movement."""
    if now_ms < _BEGAN_MS:
        return
    tracker = cluster.state.reassignments
    tracker.apply_cluster(_brokers(now_ms))
    seconds = (now_ms - _BEGAN_MS) / SECOND
    stood = (NOW_MS - 7 * MINUTE - _BEGAN_MS) / SECOND
    for number, (adding, removing, per_second, until) in enumerate(
        ((_FULL, 1, 1_900.0, stood), (5, 2, 1_150.0, seconds), (4, 3, 2_400.0, seconds))
    ):
        whole = 6_200_000 + 410_000 * number
        copied = min(whole, int(per_second * min(seconds, until)))
        partition = TopicPartition("orders-latest-changelog", number)
        tracker.apply(
            _moving(partition, adding, removing, whole + int(30 * seconds), copied, now_ms)
        )


def _brokers(at_ms: int) -> ClusterRecord:
    brokers = {
        number: BrokerRecord(fenced=False, usable_bytes=320 << 30, total_bytes=1 << 40)
        for number in range(1, _BROKERS + 1)
    }
    brokers[_FULL] = replace(brokers[_FULL], usable_bytes=11 << 20)
    throttles: dict[str, ThrottleRecord] = {}
    return ClusterRecord(2, at_ms, brokers, 2, 41, (4, 3), False, throttles)


def _moving(
    partition: TopicPartition, adding: int, removing: int, whole: int, copied: int, at_ms: int
) -> ReassignmentRecord:
    stays = 1 + (removing + partition.partition) % 3
    stays = stays if stays != removing else 1 + stays % 3
    ends = {removing: whole, stays: whole, adding: min(copied, whole)}
    return ReassignmentRecord(
        2,
        *partition,
        replicas=(adding, stays, removing),
        adding=(adding,),
        removing=(removing,),
        isr=(stays, removing),
        leader=stays,
        as_of_ms=at_ms,
        leader_epoch=12,
        log_ends=ends,
        sizes={broker: end * _RECORD_BYTES for broker, end in ends.items()},
    )


def _ended(cluster: Cluster, number: int, ended_ms: int):  # type: ignore[no-untyped-def]
    """Return a function that observes a partition whose reassignment completes at a time (ms)."""
    partition = TopicPartition("orders", number)

    def observe(now_ms: int) -> None:
        tracker = cluster.state.reassignments
        if ended_ms - 8 * MINUTE <= now_ms < ended_ms:
            left = (ended_ms - now_ms) / SECOND
            tracker.apply(_moving(partition, 4, 1, 900_000, int(900_000 - 1_700 * left), now_ms))
        elif partition in tracker.ongoing:
            replicas = tuple(one for one in tracker.ongoing[partition].latest.replicas if one != 1)
            tracker.end(partition, replicas, replicas, now_ms)

    return observe
