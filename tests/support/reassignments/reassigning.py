"""A cluster with reassignments: one healthy, one to a broker that is away, one just begun."""

from __future__ import annotations

from msgspec.structs import replace

from caughtup.models.ids import TopicPartition
from caughtup.models.records.reassignments import (
    BrokerRecord,
    ClusterRecord,
    ReassignmentRecord,
    ThrottleRecord,
)
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import START_MS
from tests.support.states import cluster_state

FINE, DEAD, NEW = (TopicPartition(name, 0) for name in ("fine", "dead", "new"))
DONE, LOST = (TopicPartition(name, 0) for name in ("done", "lost"))
OBSERVATIONS, APART_MS = 40, 5_000
#: The time of the last observations.
SEEN_MS = START_MS + (OBSERVATIONS - 1) * APART_MS
#: The age of the orphaned throttle by then.
ORPHANED_MS = SEEN_MS + 700_000
_RECORD_BYTES = 100


def cluster_observation(at_ms: int, missing: tuple[str, ...] = ()) -> ClusterRecord:
    """Return an observation of six brokers, of which 5 is away and 6 has a throttle."""
    brokers = {broker: BrokerRecord(fenced=False) for broker in (1, 2, 3, 4)}
    brokers[6] = BrokerRecord(fenced=False, leader_rate=1_000_000, follower_rate=1_000_000)
    throttles = {"left": ThrottleRecord("*", "*")}
    return ClusterRecord(2, at_ms, brokers, 1, 7, (4, 3), False, throttles, missing)


def ongoing_observation(
    partition: TopicPartition, target: int, at_ms: int, copied: int
) -> ReassignmentRecord:
    """Observe a move from broker 1 to another, with ``copied`` of 100,000 records."""
    away = target == 5
    return ReassignmentRecord(
        2,
        *partition,
        replicas=(target, 1),
        adding=(target,),
        removing=(1,),
        isr=(1,),
        leader=1,
        as_of_ms=at_ms,
        leader_epoch=3,
        offline=(target,) if away else (),
        log_ends={1: 100_000} | ({} if away else {target: copied}),
        sizes={1: 100_000 * _RECORD_BYTES} | ({} if away else {target: copied * _RECORD_BYTES}),
        unanswered=(target,) if away else (),
    )


def reassigning() -> ClusterState:
    """Observe all reassignments for some minutes, and assess them."""
    state = cluster_state()
    tracker = state.reassignments
    for number in range(OBSERVATIONS):
        at_ms = START_MS + number * APART_MS
        tracker.apply_cluster(cluster_observation(at_ms))
        tracker.apply(ongoing_observation(FINE, 2, at_ms, 1_000 * number))
        tracker.apply(ongoing_observation(DEAD, 5, at_ms, 0))
        assess(state, at_ms)
    for ended in (DONE, LOST):
        tracker.apply(ongoing_observation(ended, 2, SEEN_MS, 10))
    tracker.apply(ongoing_observation(NEW, 3, SEEN_MS, 10))
    assess(state, SEEN_MS)
    tracker.end(DONE, (2,), (2,), SEEN_MS)
    tracker.end(LOST, None, (), SEEN_MS)
    return state


def join(state: ClusterState, at_ms: int = SEEN_MS + APART_MS) -> None:
    """Make the copy of FINE join the ISR."""
    observation = ongoing_observation(FINE, 2, at_ms, 100_000)
    state.reassignments.apply(replace(observation, isr=(1, 2)))


def assess(state: ClusterState, now_ms: int, budget_seconds: float | None = None) -> None:
    """Assess every reassignment."""
    for _ in state.reassignment_watch.assess(state.reassignments, now_ms, budget_seconds):
        pass
