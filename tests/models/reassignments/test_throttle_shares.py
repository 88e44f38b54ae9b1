"""Who shares a throttle, and how long a copy may stand because of it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from caughtup.models.reassignments.throttle_rates import Share, Throttle, throttles_on
from caughtup.models.reassignments.throttle_shares import grown_bytes, throttle_shares
from caughtup.models.records.reassignments import ClusterRecord, ThrottleRecord
from tests.support.reassignments.one_reassignment import (
    BROKERS,
    BYTES,
    CLUSTER,
    HEAD,
    PARTITION,
    an_observation,
    observations,
    track,
)

SEEN = observations(
    9, lambda step: an_observation(step, {4: 10_000 * step, 5: 0}, head=HEAD + 5_000 * step)
)


def throttled(rate: int) -> ClusterRecord:
    brokers = {
        one: replace(observation, leader_rate=rate, follower_rate=rate)
        for one, observation in BROKERS.items()
    }
    topics = {PARTITION.topic: ThrottleRecord("*", "0:4,0:5")}
    return replace(CLUSTER, brokers=brokers, throttles=topics)


def test_copies_and_in_sync_replicas_take_their_parts_of_the_leaders_throttle() -> None:
    shares = throttle_shares([track(SEEN)], throttled(1_000_000))
    leader = shares.leaders[1]
    assert leader.copies == 2
    assert leader.copied_bytes == pytest.approx(1_000 * BYTES)
    assert leader.in_sync_bytes == pytest.approx(2 * 500 * BYTES)
    assert shares.followers[4] == Share(1, pytest.approx(1_000 * BYTES), 0.0)
    assert shares.followers[5] == Share(1, 0.0, 0.0)
    assert 2 not in shares.followers  # in sync and not listed


def test_shares_add_up_over_partitions() -> None:
    other = track(SEEN)
    other.observations = [replace(observation, partition=1) for observation in other.observations]
    shares = throttle_shares([track(SEEN), other], throttled(1_000_000))
    assert shares.leaders[1].copies == 4
    assert shares.followers[4].copies == 1  # of the other partition none is listed


def test_without_throttles_nobody_shares_one() -> None:
    shares = throttle_shares([track(SEEN)], CLUSTER)
    assert shares.leaders == shares.followers == {}
    assert throttles_on(PARTITION, 1, 4, CLUSTER, shares) == ()
    assert throttle_shares([track(SEEN)], None).leaders == {}


def test_the_tightest_throttle_comes_first() -> None:
    cluster = throttled(1_000_000)
    shares = throttle_shares([track(SEEN)], cluster)
    found = throttles_on(PARTITION, 1, 4, cluster, shares)
    assert [(one.side, one.broker) for one in found] == [("leader", 1), ("follower", 4)]


def test_a_throttle_is_starved_when_in_sync_replicas_use_most_of_it() -> None:
    def of(in_sync: float) -> Throttle:
        return Throttle(1, "leader", 1_000, Share(1, 0.0, in_sync))

    assert (of(799).starved, of(799).used_up) == (False, False)
    assert (of(800).starved, of(800).used_up) == (True, False)
    assert (of(1_000).starved, of(1_000).used_up) == (True, True)
    assert not Throttle(1, "leader", 0, Share()).starved


def test_patience_grows_with_the_copies_and_is_bounded_for_any_rate() -> None:
    def patience(rate: int, copies: int) -> float:
        return Throttle(1, "leader", rate, Share(copies)).patience_seconds

    assert patience(10_000_000, 1) == 44
    assert patience(10_000_000, 1) < patience(10_000_000, 4) < patience(1_000_000, 4)
    assert patience(0, 1) == patience(1, 1) == 44
    assert patience(0, 10) == 11 * 10 * 12


def test_growth_is_of_the_last_minute_and_a_half_and_leaves_deleted_segments_out() -> None:
    sizes = [0, 1_000, 2_000, 500, 1_500]
    seen = [an_observation(step, {}, sizes={1: size}) for step, size in enumerate(sizes)]
    assert grown_bytes(seen, 1) == pytest.approx(3_000 / 40)
    assert grown_bytes(seen[:1], 1) == 0
    assert grown_bytes(seen, 9) == 0
