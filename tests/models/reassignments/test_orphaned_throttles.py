"""Throttles that are left behind."""

from __future__ import annotations

from msgspec.structs import replace

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.orphaned_throttles import (
    ORPHANED_BESIDE_MS,
    ORPHANED_MS,
    ThrottleWatch,
    unused_throttles,
)
from caughtup.models.records.reassignments import BrokerRecord, ClusterRecord
from tests.support.reassignments.observations import EVENTS, THROTTLED


def test_kafkas_default_rate_is_no_throttle() -> None:
    brokers = {1: BrokerRecord(leader_rate=2**63 - 1)}
    assert unused_throttles(ClusterRecord(2, 0, brokers), {}) == ()


def test_what_moves_is_behind_the_throttles_of_its_topic_and_brokers() -> None:
    assert [found[:2] for found in unused_throttles(THROTTLED, {})] == [
        ("broker", "1"),
        ("broker", "2"),
        ("topic", "events"),
    ]
    assert unused_throttles(THROTTLED, {EVENTS: (1, 2)}) == ()
    other = {TopicPartition("other", 0): (1, 3)}
    assert [found[:2] for found in unused_throttles(THROTTLED, other)] == [
        ("broker", "2"),
        ("topic", "events"),
    ]


def test_a_throttle_is_orphaned_ten_minutes_after_the_last_reassignment() -> None:
    watch = ThrottleWatch()
    watch.apply(replace(THROTTLED, as_of_ms=1_000), {EVENTS: (1, 2)})
    watch.apply(replace(THROTTLED, as_of_ms=2_000), {})
    assert watch.orphaned(2_000 + ORPHANED_MS - 1) == ()
    orphans = watch.orphaned(2_000 + ORPHANED_MS)
    assert [(one.kind, one.name) for one in orphans] == [
        ("broker", "1"),
        ("broker", "2"),
        ("topic", "events"),
    ]
    assert orphans[0].what == "leader.replication.throttled.rate=1000"
    assert "--entity-type topics --entity-name events" in orphans[2].advice


def test_a_clock_that_is_set_back_hides_no_throttle() -> None:
    watch = ThrottleWatch()
    watch.apply(replace(THROTTLED, as_of_ms=9 * ORPHANED_BESIDE_MS), {EVENTS: (1, 2)})
    watch.apply(replace(THROTTLED, as_of_ms=9 * ORPHANED_BESIDE_MS), {})
    watch.apply(replace(THROTTLED, as_of_ms=2_000), {})
    assert len(watch.orphaned(2_000 + ORPHANED_MS)) == 3


def test_beside_other_reassignments_a_throttle_is_given_an_hour() -> None:
    watch = ThrottleWatch()
    other = {TopicPartition("other", 0): (3,)}
    for at_ms in range(0, ORPHANED_BESIDE_MS + 1, 60_000):
        watch.apply(replace(THROTTLED, as_of_ms=at_ms), other)
        assert bool(watch.orphaned(at_ms)) == (at_ms >= ORPHANED_BESIDE_MS)


def test_a_reassignment_that_comes_back_makes_a_throttle_its_own_again() -> None:
    watch = ThrottleWatch()
    watch.apply(THROTTLED, {})
    watch.apply(replace(THROTTLED, as_of_ms=ORPHANED_MS), {EVENTS: (1, 2)})
    watch.apply(replace(THROTTLED, as_of_ms=ORPHANED_MS + 1), {})
    assert watch.orphaned(ORPHANED_MS + 2) == ()


def test_a_round_that_could_not_ask_changes_nothing() -> None:
    watch = ThrottleWatch()
    watch.apply(THROTTLED, {})
    watch.apply(ClusterRecord(2, as_of_ms=ORPHANED_MS), {})
    assert len(watch.orphaned(ORPHANED_MS)) == 3


def test_what_could_not_be_asked_for_stays_as_it_was_and_the_rest_goes() -> None:
    watch = ThrottleWatch()
    watch.apply(THROTTLED, {})
    bare = ClusterRecord(2, ORPHANED_MS, {1: BrokerRecord(), 2: BrokerRecord()})
    watch.apply(replace(bare, missing=("throttles of topics: gone",)), {})
    assert [one.name for one in watch.orphaned(ORPHANED_MS)] == ["events"]
    watch.apply(replace(bare, missing=("throttles of broker 1: gone",)), {})
    assert watch.orphaned(ORPHANED_MS) == ()
