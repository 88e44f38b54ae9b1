from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.errors import DecodeError
from caughtup.models.ids import TopicPartition
from caughtup.models.wire.group_metadata import (
    ConsumerAssignment,
    ConsumerSubscription,
    decode_assignment,
    decode_subscription,
)
from tests.models.wire.strategies import assignments, subscriptions, thorough
from tests.support import wire

OWNED = (TopicPartition("orders", 0), TopicPartition("orders", 3))
SUBSCRIPTION = ConsumerSubscription(3, ("orders",), b"user data", OWNED, 12, "rack-a")


@thorough
@given(subscriptions())
def test_a_subscription_reads_back_in_every_version(subscription):
    assert decode_subscription(wire.subscription(subscription)) == subscription


@thorough
@given(assignments)
def test_an_assignment_reads_back_in_every_version(assignment):
    assert decode_assignment(wire.assignment(assignment)) == assignment


@thorough
@given(st.integers(4, 32767), st.binary(max_size=20))
def test_a_later_version_is_read_as_far_as_it_is_known(version, appended):
    data = wire.subscription(SUBSCRIPTION)[2:]
    later = decode_subscription(wire.number("h", version) + data + appended)
    assert later == dataclasses.replace(SUBSCRIPTION, version=version)
    given_partitions = ConsumerAssignment(version, OWNED, None)
    assert decode_assignment(wire.assignment(given_partitions) + appended) == given_partitions


@pytest.mark.parametrize("decode", [decode_subscription, decode_assignment])
def test_a_negative_version_is_refused(decode):
    with pytest.raises(DecodeError, match=r"unknown_version: consumer protocol .* version -1"):
        decode(wire.number("h", -1) + wire.subscription(SUBSCRIPTION)[2:])
