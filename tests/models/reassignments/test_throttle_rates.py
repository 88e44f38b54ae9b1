"""Throttles: whom their configs list, and at which rates."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.throttle_rates import (
    rates_on,
    throttled_followers,
    throttled_leaders,
)
from caughtup.models.records.reassignments import (
    BrokerRecord,
    ClusterRecord,
    ThrottleRecord,
)
from tests.support.reassignments.observations import EVENTS, THROTTLED


def leader_rate(
    cluster: ClusterRecord | None, partition: TopicPartition, broker: int
) -> int | None:
    """Return the rate of what a broker sends of a partition to one that nothing limits."""
    return next(
        (rate for side, _, rate in rates_on(partition, broker, 99, cluster) if side == "leader"),
        None,
    )


def follower_rate(
    cluster: ClusterRecord | None, partition: TopicPartition, broker: int
) -> int | None:
    """Return the rate of what a broker fetches of a partition."""
    return next(
        (
            rate
            for side, _, rate in rates_on(partition, None, broker, cluster)
            if side == "follower"
        ),
        None,
    )


@pytest.mark.parametrize(
    ("config", "listed"),
    [
        ("*", {1, 2, 3}),
        ("none", set()),
        ("", set()),
        ("3:1,3:2,4:3", {1, 2}),
        (" 3:1 , 3:9", {1}),
        ("3:1,,rubbish,3:x,:2,3:", {1}),
        ("3:" + "9" * 5_000, set()),
    ],
)
def test_a_config_lists_replicas_of_a_partition(config: str, listed: set[int]) -> None:
    assert throttled_leaders(ThrottleRecord(leader=config), 3, (1, 2, 3)) == listed
    assert throttled_followers(ThrottleRecord(follower=config), 3, (1, 2, 3)) == listed


def test_a_rate_holds_for_the_replicas_that_a_topic_lists() -> None:
    assert leader_rate(THROTTLED, EVENTS, 1) == 1_000
    assert leader_rate(THROTTLED, EVENTS, 2) is None  # listed for another partition, and no rate
    assert follower_rate(THROTTLED, EVENTS, 2) == 2_000
    assert follower_rate(THROTTLED, EVENTS, 3) is None  # listed, without a rate
    assert leader_rate(THROTTLED, TopicPartition("other", 3), 1) is None
    assert leader_rate(None, EVENTS, 1) is None
    assert leader_rate(replace(THROTTLED, brokers=None), EVENTS, 1) is None


@settings(print_blob=True, deadline=None)
@given(st.text(max_size=60))
def test_no_text_in_a_config_is_too_strange(config: str) -> None:
    assert throttled_leaders(ThrottleRecord(leader=config), 3, (1, 2)) <= {1, 2}


def test_kafkas_default_rate_limits_nobody() -> None:
    brokers = {1: BrokerRecord(leader_rate=2**63 - 1)}
    assert leader_rate(replace(THROTTLED, brokers=brokers), EVENTS, 1) is None
