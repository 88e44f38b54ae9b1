"""Observations of a partition: a typical one, those of a controller's state, and random ones."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from caughtup.models.ids import TopicPartition
from caughtup.models.records.reassignments import (
    BrokerRecord,
    ClusterRecord,
    ReassignmentRecord,
    ThrottleRecord,
)
from tests.support.controllers.partition_state import PartitionState

ORDERS = TopicPartition("orders", 0)


def a_reassignment(
    partition: TopicPartition = ORDERS, *, at_ms: int = 1_000, **shown: Any
) -> ReassignmentRecord:
    """Return an observation: broker 3 replaces 2, 1 stays; ``shown`` overrides fields."""
    observation = ReassignmentRecord(2, *partition, at_ms, (3, 1, 2), (3,), (2,), (1, 2), 1)
    return replace(observation, **shown)


#: Brokers 3 and 4 replace 2; 1 stays.
MOVING = a_reassignment(replicas=(3, 4, 1, 2), adding=(3, 4))
#: A partition whose topic and brokers are throttled.
EVENTS = TopicPartition("events", 3)
THROTTLED = ClusterRecord(
    2,
    0,
    {
        1: BrokerRecord(leader_rate=1_000),
        2: BrokerRecord(follower_rate=2_000),
        3: BrokerRecord(),
    },
    throttles={EVENTS.topic: ThrottleRecord("3:1,4:2", "3:2,3:3")},
)


def observed(
    state: PartitionState, metadata: PartitionState | None, at_ms: int = 0
) -> ReassignmentRecord:
    """Observe a partition as listed by the controller, and by brokers' metadata if given."""
    isr, leader, epoch = (
        (metadata.isr, metadata.leader, metadata.leader_epoch) if metadata else ((), None, None)
    )
    listed = (state.replicas, state.adding, state.removing)
    return ReassignmentRecord(2, *ORDERS, at_ms, *listed, isr, leader, leader_epoch=epoch)


def any_observations(
    partitions: Collection[TopicPartition],
    ids: st.SearchStrategy[int],
    *,
    offsets: st.SearchStrategy[dict[int, int]],
    times: st.SearchStrategy[int],
    epochs: st.SearchStrategy[int | None],
    **more: st.SearchStrategy[Any],
) -> st.SearchStrategy[ReassignmentRecord]:
    """Draw observations of partitions in which anything may be listed or missing."""
    brokers = st.lists(ids, max_size=5).map(tuple)
    return st.builds(
        lambda partition, **known: ReassignmentRecord(2, *partition, **known),
        partition=st.sampled_from(list(partitions)),
        replicas=brokers,
        adding=brokers,
        removing=brokers,
        isr=brokers,
        leader=st.none() | ids,
        as_of_ms=times,
        leader_epoch=epochs,
        offline=brokers,
        log_ends=offsets,
        not_hosted=brokers,
        **more,
    )
