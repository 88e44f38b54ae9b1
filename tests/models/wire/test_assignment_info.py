from __future__ import annotations

import dataclasses
import struct

import pytest
from hypothesis import given

from caughtup.models.errors import DecodeError
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.offsets import LONG_MAX
from caughtup.models.wire.user_data import AssignmentInfo, HostInfo, decode_assignment_info
from tests.models.wire.strategies import assignment_infos, thorough
from tests.models.wire.streams_encoders import assignment_info
from tests.support import wire

HOST = HostInfo("streams-1", 8080)
INFO = AssignmentInfo(
    version=11,
    commonly_supported_version=11,
    active=(TaskId(0, 1),),
    standby={TaskId(1, 2): (TopicPartition("orders", 2),)},
    active_by_host={HOST: (TopicPartition("orders", 1),)},
    standby_by_host={HOST: (TopicPartition("orders", 2),)},
    error_code=0,
    next_rebalance_ms=None,
)


@thorough
@given(assignment_infos())
def test_a_members_assignment_reads_back_in_every_version(info):
    assert decode_assignment_info(assignment_info(info)) == info


@pytest.mark.parametrize("version", [-1, 0, 12])
def test_a_version_that_is_not_known_is_refused(version):
    data = wire.number("i", version) + wire.assignment_info(INFO)[4:]
    with pytest.raises(DecodeError, match=f"Kafka Streams assignment version {version}"):
        decode_assignment_info(data)


def test_no_next_rebalance_is_none_and_an_immediate_one_is_zero():
    never = wire.assignment_info(INFO)
    assert never.endswith(wire.number("q", LONG_MAX))
    assert decode_assignment_info(never).next_rebalance_ms is None
    at_once = dataclasses.replace(INFO, next_rebalance_ms=0)
    assert decode_assignment_info(wire.assignment_info(at_once)).next_rebalance_ms == 0


def test_a_host_with_a_topic_that_the_dictionary_lacks_is_refused():
    data = wire.assignment_info(INFO)
    dictionary_entry = wire.number("i", 0) + wire.modified_utf("orders")
    broken = data.replace(dictionary_entry, wire.number("i", 9) + wire.modified_utf("orders"))
    with pytest.raises(DecodeError, match="bad_reference: no topic has index 0"):
        decode_assignment_info(broken)


@pytest.mark.parametrize("task", [TaskId(0, 1), TaskId(1, 2)], ids=["active", "standby"])
def test_a_task_of_a_named_topology_is_refused_by_name(task):
    name = "billing".encode("utf-16-be")
    unnamed = struct.pack(">iii", *task, 0)
    named = struct.pack(">iii", *task, len(name) // 2) + name
    with pytest.raises(DecodeError, match=f"named_topology: task {task} belongs"):
        decode_assignment_info(wire.assignment_info(INFO).replace(unnamed, named))


def test_the_oldest_assignment_holds_tasks_and_nothing_of_hosts():
    active = wire.array([struct.pack(">ii", 0, 1)])
    standby = wire.array([struct.pack(">ii", 1, 2) + wire.array([])])
    info = decode_assignment_info(wire.number("i", 1) + active + standby)
    expected = AssignmentInfo(1, -1, (TaskId(0, 1),), {TaskId(1, 2): ()}, {}, {}, 0, None)
    assert info == expected
