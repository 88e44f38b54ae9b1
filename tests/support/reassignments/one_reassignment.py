"""A partition reassigned from brokers 1, 2, 3 to 2, 4, 5, observed every ten seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.figures import ReassignmentFigures
from caughtup.models.reassignments.tracker import ReassignmentTracker, TrackedReassignment
from caughtup.models.reassignments.verdict import ReassignmentVerdict, assess
from caughtup.models.records.reassignments import (
    BrokerRecord,
    ClusterRecord,
    ReassignmentRecord,
    ThrottleRecord,
)

PARTITION = TopicPartition("events", 0)
STEP_MS = 10_000
BYTES = 100
HEAD = 1_000_000
#: The offsets that an unthrottled copy gets per observation: it takes 50 of them.
PACE = 20_000

BROKERS = {one: BrokerRecord(fenced=False, usable_bytes=10**12) for one in range(1, 7)}
CLUSTER = ClusterRecord(2, 0, BROKERS, quorum_leader=100, quorum_epoch=1, software=(4, 3))


def an_observation(
    step: int,
    copies: dict[int, int],
    *,
    head: int = HEAD,
    isr: tuple[int, ...] = (1, 2, 3),
    leader: int | None = 1,
    **known: object,
) -> ReassignmentRecord:
    """Return the observation at a step.

    ``copies`` are the log ends of replicas out of sync; in-sync ones are at ``head``.
    """
    ends = dict.fromkeys(isr, head) | copies
    observation = ReassignmentRecord(
        2,
        *PARTITION,
        replicas=(2, 4, 5, 1, 3),
        adding=(4, 5),
        removing=(1, 3),
        isr=isr,
        leader=leader,
        as_of_ms=step * STEP_MS,
        leader_epoch=7,
        log_ends=ends,
        sizes={broker: end * BYTES for broker, end in ends.items()},
    )
    return replace(observation, **known)  # type: ignore[arg-type]


def copying(step: int) -> int:
    """Return the log end of a copy that proceeds at its pace."""
    return min(HEAD, PACE * step)


def throttled(rate: int, topic: ThrottleRecord | None = None) -> ClusterRecord:
    """Throttle all brokers (bytes/s), as kafka-reassign-partitions does for this reassignment."""
    brokers = {
        one: replace(observation, leader_rate=rate, follower_rate=rate)
        for one, observation in BROKERS.items()
    }
    listed = topic or ThrottleRecord("0:1,0:2,0:3", "0:4,0:5")
    return replace(CLUSTER, brokers=brokers, throttles={PARTITION.topic: listed})


def track(observations: Iterable[ReassignmentRecord]) -> TrackedReassignment:
    """Track observations as the service does."""
    tracker = ReassignmentTracker()
    for observation in observations:
        tracker.apply(observation)
    return tracker.ongoing[PARTITION]


def observations(count: int, at: Callable[[int], ReassignmentRecord]) -> list[ReassignmentRecord]:
    """Return ``count`` observations."""
    return [at(step) for step in range(count)]


def judged(
    seen: list[ReassignmentRecord],
    cluster: ClusterRecord | None = CLUSTER,
    *,
    quorum_changed_ms: int | None = None,
    budget_seconds: float | None = None,
    later_ms: int = 0,
) -> tuple[ReassignmentVerdict, ReassignmentFigures]:
    """Assess a reassignment at its last observation, or ``later_ms`` after it."""
    now_ms = seen[-1].as_of_ms + later_ms
    if cluster is not None:
        cluster = replace(cluster, as_of_ms=seen[-1].as_of_ms)
    return assess(track(seen), cluster, quorum_changed_ms, now_ms, budget_seconds)
