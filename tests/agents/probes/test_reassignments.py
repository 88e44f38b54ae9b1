"""What several brokers told is put together so that what is unknown stays unknown."""

from __future__ import annotations

import pytest

from caughtup.agents.kafka.protocol.answers import LogDirectory
from caughtup.agents.kafka.protocol.client import PartitionReassignment
from caughtup.agents.kafka.protocol.cluster_answers import (
    ApiVersions,
    Broker,
    DescribedPartitions,
    PartitionInfo,
    oldest_release,
    zookeeper_decides,
)
from caughtup.agents.probes.reassignments import Pace
from caughtup.agents.probes.reassignments import _additional_partitions as asked_partitions
from caughtup.agents.probes.reassignments import _broker_observation as broker_observation
from caughtup.agents.probes.reassignments import _partition_observations as partition_observations
from caughtup.agents.probes.replicas import BrokerReplicas
from caughtup.agents.probes.throttles import ThrottleRates
from caughtup.models.ids import TopicPartition
from caughtup.models.records.reassignments import (
    BrokerRecord,
    ReassignmentRecord,
)

ORDERS, PARCELS = TopicPartition("orders", 0), TopicPartition("parcels", 0)
SHAPE = PartitionInfo((3, 1, 2), (1, 2), 1, 5, (3,))


def test_a_replica_is_there_or_not_or_unknown() -> None:
    told = {
        1: BrokerReplicas(True, ends={ORDERS: 9}, sizes={ORDERS: 900}),
        2: BrokerReplicas(True, ends={ORDERS: 8}),
        3: BrokerReplicas(True, not_hosted={ORDERS}),
        4: BrokerReplicas(True, ends={PARCELS: 7}),
    }
    listed = {ORDERS: PartitionReassignment((4, 3, 1, 2), (4, 3), (2,))}
    (observation,) = partition_observations(listed, {ORDERS: SHAPE}, told, 1_000)
    assert observation == ReassignmentRecord(
        2,
        *ORDERS,
        replicas=(4, 3, 1, 2),
        adding=(4, 3),
        removing=(2,),
        isr=(1, 2),
        leader=1,
        as_of_ms=1_000,
        leader_epoch=5,
        offline=(3,),
        log_ends={1: 9, 2: 8},
        sizes={1: 900},
        not_hosted=(3,),
        unanswered=(4,),  # it answered with an error
    )


def test_brokers_that_answer_for_what_they_lead_only_have_their_replicas_all_the_same() -> None:
    listed = {ORDERS: PartitionReassignment((4, 3, 1, 2), (4, 3), (2,))}
    leads = BrokerReplicas(True, ends={ORDERS: 9}, sizes={ORDERS: 900})

    def observed(**told: BrokerReplicas) -> ReassignmentRecord:
        follows = BrokerReplicas(True, not_hosted={ORDERS})
        answers = {broker: told.get(f"of_{broker}", follows) for broker in (2, 3, 4)}
        (found,) = partition_observations(listed, {ORDERS: SHAPE}, {1: leads, **answers}, 1_000)
        return found

    # Broker 2 is in the ISR, so that it has a replica.
    found = observed()
    assert (found.not_hosted, found.unanswered) == ((), (4, 3, 2))
    silent = BrokerReplicas()
    found = observed(of_2=silent)
    assert (found.not_hosted, found.unanswered) == ((4, 3), (2,))
    copying = BrokerReplicas(True, not_hosted={ORDERS}, sizes={ORDERS: 10})
    found = observed(of_2=silent, of_4=copying)
    assert (found.not_hosted, found.unanswered) == ((3,), (4, 2))
    assert found.sizes == {1: 900, 4: 10}


def test_without_metadata_there_is_no_epoch_that_would_make_an_isr_of_nobody_true() -> None:
    listed = {ORDERS: PartitionReassignment((), (), ())}
    (observation,) = partition_observations(listed, {}, {}, 1_000)
    assert observation == ReassignmentRecord(2, *ORDERS, 1_000)
    assert observation.leader_epoch is None


def test_observations_are_sorted_and_a_broker_in_both_lists_is_asked_once() -> None:
    listed = {
        PARCELS: PartitionReassignment((2, 1, 2), (2,), (2,)),
        ORDERS: PartitionReassignment((1,), (), ()),
    }
    told = {1: BrokerReplicas(), 2: BrokerReplicas(True, not_hosted={PARCELS})}
    observations = partition_observations(listed, {}, told, 1_000)
    assert [observation.topic_partition for observation in observations] == [ORDERS, PARCELS]
    assert (observations[1].not_hosted, observations[1].unanswered) == ((2,), (1,))


def test_of_a_brokers_directories_the_fullest_counts_and_dead_ones_are_named() -> None:
    directories = (
        LogDirectory("/roomy", 0, 100, 90),
        LogDirectory("/full", 0, 1_000, 10),
        LogDirectory("/dead", 56, None, None),
        LogDirectory("/odd", 0, 0, 0),
    )
    told = BrokerReplicas(True, directories=directories)
    assert broker_observation(
        Broker(1, "a", 1, True), told, {1: ThrottleRates(5, None)}
    ) == BrokerRecord(
        fenced=True,
        leader_rate=5,
        usable_bytes=10,
        total_bytes=1_000,
        offline_directories=("/dead",),
    )
    assert (
        broker_observation(Broker(2, "b", 1), None, {1: ThrottleRates(5, None)}) == BrokerRecord()
    )


def test_a_partition_is_gone_only_where_brokers_say_so() -> None:
    asked = [ORDERS, PARCELS, TopicPartition("gone", 0), TopicPartition("hidden", 0)]
    described = DescribedPartitions({ORDERS: SHAPE}, {"gone": 3, "hidden": 29})
    assert asked_partitions(asked, described) == {ORDERS: SHAPE, PARCELS: None, asked[2]: None}
    assert asked_partitions(asked, None) == {}


@pytest.mark.parametrize(
    ("levels", "release"),
    [
        ([30, 30], (4, 3)),
        ([30, 27], (4, 1)),
        ([19], (3, 7)),
        ([1], (3, 0)),
        ([30, None], None),
        ([31], None),
        ([0], None),
        ([], None),
    ],
)
def test_the_oldest_broker_tells_the_release(
    levels: list[int | None], release: tuple[int, int] | None
) -> None:
    brokers = [
        ApiVersions({}, {} if level is None else {"metadata.version": level}, {})
        for level in levels
    ]
    assert oldest_release(brokers) == release


def test_only_a_broker_under_zookeeper_takes_orders_about_leaders() -> None:
    assert zookeeper_decides(ApiVersions({3: (0, 9), 4: (0, 5)}, {}, {}))
    assert not zookeeper_decides(ApiVersions({3: (0, 9), 55: (0, 1)}, {}, {}))


def observation(
    at_ms: int, copied: int | None, partition: int = 0, end: int = 1_000
) -> ReassignmentRecord:
    """Broker 3 has copied so many of the leader's records, unless that isn't known."""
    ends = {1: end} | ({} if copied is None else {3: copied})
    return ReassignmentRecord(
        2, "orders", partition, at_ms, (3, 1), (3,), (1,), (1,), 1, ends, leader_epoch=0
    )


def test_nothing_in_reassignment_is_observed_at_leisure() -> None:
    assert Pace(2.0).pause_seconds([], 0.01) == 5.0


def test_what_has_just_begun_is_observed_soon_again() -> None:
    pace = Pace(2.0)
    assert pace.pause_seconds([observation(0, 0)], 0.01) == 2.0
    assert pace.pause_seconds([observation(2_000, None)], 0.01) == 2.0


def test_a_far_end_is_awaited_at_leisure_and_a_near_one_is_not() -> None:
    pace = Pace(2.0)
    pace.pause_seconds([observation(0, 0)], 0.01)
    assert pace.pause_seconds([observation(2_000, 10)], 0.01) == 4.0  # 198 seconds to go
    assert pace.pause_seconds([observation(4_000, 800)], 0.01) == 2.0


def test_the_nearest_end_counts() -> None:
    pace = Pace(2.0)
    pace.pause_seconds([observation(0, 0), observation(0, 0, 1)], 0.01)
    assert pace.pause_seconds([observation(2_000, 1), observation(2_000, 900, 1)], 0.01) == 2.0
    assert pace.pause_seconds([observation(4_000, 2), observation(4_000, 900, 1)], 0.01) == 4.0


def test_what_was_copied_whole_is_about_to_end() -> None:
    pace = Pace(2.0)
    for at_ms in (0, 2_000, 4_000):
        assert pace.pause_seconds([observation(at_ms, 1_000)], 0.01) == 2.0


def test_what_gets_nowhere_is_not_near_its_end() -> None:
    pace = Pace(2.0)
    pace.pause_seconds([observation(0, 500)], 0.01)
    assert pace.pause_seconds([observation(2_000, 500)], 0.01) == 4.0
    assert pace.pause_seconds([observation(4_000, 600, end=2_000)], 0.01) == 4.0


def test_many_partitions_are_observed_for_a_tenth_of_the_time_at_most() -> None:
    pace = Pace(2.0)
    for at_ms in (0, 2_000):
        moving = [observation(at_ms, 900, partition) for partition in range(5_000)]
        assert pace.pause_seconds(moving, 0.1) == 4.0 if at_ms else 2.0
        assert pace.pause_seconds(moving, 3.0) == 27.0


def test_a_round_that_waits_for_a_broker_makes_nobody_wait_for_the_next() -> None:
    pace = Pace(2.0)
    assert pace.pause_seconds([], 30.0) == 5.0
    assert pace.pause_seconds([observation(0, 0)], 30.0) == 2.0
    assert (
        pace.pause_seconds([observation(2_000, 900, partition) for partition in range(600)], 30.0)
        == 4.0
    )
