from __future__ import annotations

import struct

import pytest
from hypothesis import given

from caughtup.models.errors import DecodeError
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.wire.user_data import SubscriptionInfo, decode_subscription_info
from tests.models.wire.strategies import subscription_infos, thorough
from tests.models.wire.streams_encoders import subscription_info
from tests.support import wire

PROCESS = ProcessId.parse("00000000-0000-0001-8000-000000000002")
INFO = SubscriptionInfo(11, 11, PROCESS, "", {TaskId(0, 1): -2}, 5, 0, {})


@thorough
@given(subscription_infos())
def test_a_members_user_data_reads_back_in_every_version(info):
    assert decode_subscription_info(subscription_info(info)) == info


@pytest.mark.parametrize("version", [-1, 0, 12])
def test_a_version_that_is_not_known_is_refused(version):
    data = wire.number("i", version) + wire.subscription_info(INFO)[4:]
    with pytest.raises(DecodeError, match=f"Kafka Streams subscription version {version}"):
        decode_subscription_info(data)


def test_a_task_of_a_named_topology_is_refused_by_name():
    unnamed = struct.pack(">iiq", 0, 1, -2) + wire.string(None)
    named = struct.pack(">iiq", 0, 1, -2) + wire.string("billing")
    data = wire.subscription_info(INFO).replace(unnamed, named)
    with pytest.raises(DecodeError, match="named_topology: task 0_1 belongs to a named topology"):
        decode_subscription_info(data)


def test_the_last_of_two_sums_for_a_task_counts_as_in_a_java_map():
    once = struct.pack(">iiq", 0, 1, -2) + wire.string(None)
    twice = struct.pack(">iiq", 0, 1, 17) + wire.string(None)
    count_and_sum = wire.number("i", 1) + once
    data = wire.subscription_info(INFO).replace(count_and_sum, wire.number("i", 2) + once + twice)
    assert decode_subscription_info(data).offset_sums == {TaskId(0, 1): 17}


def test_a_task_that_an_old_member_named_twice_is_not_running_as_in_a_java_map():
    task = wire.array([struct.pack(">ii", 0, 1)])
    data = wire.number("i", 1) + struct.pack(">qq", *PROCESS) + task + task
    assert decode_subscription_info(data).offset_sums == {TaskId(0, 1): -3}


def test_the_oldest_user_data_says_who_the_member_is_and_names_its_tasks():
    tasks = wire.array([struct.pack(">ii", 0, 1), struct.pack(">ii", 1, 0)]) + wire.array([])
    data = wire.number("i", 1) + struct.pack(">qq", *PROCESS) + tasks
    assert decode_subscription_info(data) == SubscriptionInfo(
        1, -1, PROCESS, "", {TaskId(0, 1): -2, TaskId(1, 0): -2}, 0, 0, {}
    )
