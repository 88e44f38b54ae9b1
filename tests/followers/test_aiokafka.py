"""What a follower in Python says, tells and refuses, without any broker."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Mapping
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.cluster import ClusterMetadata
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocol, ConsumerProtocolMemberMetadata
from aiokafka.protocol.metadata import MetadataResponse_v1

from caughtup.followers.aiokafka import Follower
from caughtup.followers.python import member as member_module
from caughtup.followers.python.reports import PositionReports
from caughtup.followers.python.settings import FollowerSettings
from caughtup.followers.python.topology import Resume, TopicGroup, Topology
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.wire.group_metadata import decode_assignment, decode_subscription
from caughtup.models.wire.user_data import decode_assignment_info, decode_subscription_info

TOPOLOGY = Topology([TopicGroup(("placed",), {"latest": "log"}), TopicGroup(("pings",))])
CONNECTION = {"bootstrap_servers": "127.0.0.1:1"}
ZERO, ONE = TaskId(0, 0), TaskId(0, 1)


class Held:
    """Copies as a test wants them to stand."""

    def __init__(self, positions: Mapping[TopicPartition, int], *restored: TaskId) -> None:
        self._positions = positions
        self._restored = restored
        self.given: tuple[frozenset[TaskId], frozenset[TaskId]] | None = None

    def positions(self) -> Mapping[TopicPartition, int]:
        return self._positions

    def restored(self, task: TaskId) -> bool:
        return task in self._restored

    def assigned(
        self, active: frozenset[TaskId], standby: frozenset[TaskId], resume: Resume
    ) -> None:
        self.given = (active, standby)


NOTHING = Held({})


def follower(copies: Held = NOTHING, **options: Any) -> Follower:
    return Follower("orders", TOPOLOGY, copies, CONNECTION, **options)


def cluster(partitions: int = 2) -> ClusterMetadata:
    """A cluster with this many partitions of each topic, as a broker describes it."""
    described = [
        (0, topic, False, [(0, number, 1, [1], [1]) for number in range(partitions)])
        for topic in TOPOLOGY.topics
    ]
    metadata = ClusterMetadata()
    metadata.update_metadata(MetadataResponse_v1([(1, "127.0.0.1", 9, None)], 1, described))
    return metadata


def through_the_wire(joined: ConsumerProtocolMemberMetadata) -> ConsumerProtocolMemberMetadata:
    return ConsumerProtocol.METADATA.decode(joined.encode())


def test_the_way_to_ask_for_a_rebalance_is_still_there() -> None:
    """It is private: whoever upgrades aiokafka has to look where it went."""
    assert "self._coordinator = None" in inspect.getsource(AIOKafkaConsumer.__init__)
    assert "self._coordinator = GroupCoordinator(" in inspect.getsource(AIOKafkaConsumer.start)
    assert list(inspect.signature(GroupCoordinator.request_rejoin).parameters) == ["self"]


def test_each_follower_has_an_assignor_of_its_own() -> None:
    one, two = follower(), follower()
    assert issubclass(one.assignor, AbstractPartitionAssignor)
    assert one.assignor is not two.assignor
    assert one.process != two.process
    assert one.assignor.name == two.assignor.name == "caughtup"


def test_a_member_says_what_it_is_and_another_thing_each_time() -> None:
    one = follower(Held({TopicPartition("log", 1): 40}))
    joins = [one.assignor.metadata({"placed", "pings"}) for _ in range(2)]
    assert joins[0].encode() != joins[1].encode()
    subscription = decode_subscription(joins[0].encode())
    assert subscription.topics == ("pings", "placed")
    assert subscription.owned == ()
    info = decode_subscription_info(subscription.user_data or b"")
    assert info.process_id == one.process
    assert info.offset_sums == {ONE: 40}


def test_a_rebalance_gives_members_their_tasks_and_these_say_so_when_they_join_again() -> None:
    copies = Held({TopicPartition("log", 0): 40}, ZERO)
    one = follower(copies)
    joined = {"m": through_the_wire(one.assignor.metadata(TOPOLOGY.topics))}
    given = one.assignor.assign(cluster(), joined)
    partitions = decode_assignment(given["m"].encode())
    assert partitions.partitions == tuple(
        TopicPartition(topic, number) for topic in ("pings", "placed") for number in (0, 1)
    )
    info = decode_assignment_info(partitions.user_data or b"")
    assert sorted(info.active) == [ZERO, ONE, TaskId(1, 0), TaskId(1, 1)]
    one._member.on_assignment(partitions.user_data, lambda task: None)
    assert copies.given == (frozenset({ZERO, ONE}), frozenset())
    again = decode_subscription(one.assignor.metadata(TOPOLOGY.topics).encode())
    # What has no state runs, and so does what is restored.
    sums = {ZERO: -2, TaskId(1, 0): -2, TaskId(1, 1): -2}
    assert decode_subscription_info(again.user_data or b"").offset_sums == sums


@pytest.mark.parametrize("user_data", [None, b"", b"\x00\x00\x00\x0c", b"\xff" * 40])
def test_a_member_that_cannot_be_read_is_a_new_one(
    user_data: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    one = follower()
    joined = {
        "m": through_the_wire(one.assignor.metadata(TOPOLOGY.topics)),
        "odd": ConsumerProtocolMemberMetadata(0, list(TOPOLOGY.topics), user_data),
    }
    given = one.assignor.assign(cluster(), joined)
    read = [one for assigned in given.values() for one in assigned.partitions()]
    assert len(read) == len(set(read)) == 4
    assert "member odd takes part as a new one" in caplog.text


def test_a_rebalance_that_cannot_be_decided_leaves_everything_in_place(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one = follower()

    def fails(*given: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr(member_module, "decide_rebalance", fails)
    joined = {"m": through_the_wire(one.assignor.metadata(TOPOLOGY.topics))}
    given = one.assignor.assign(cluster(), joined)
    assert len(given["m"].partitions()) == 4
    info = decode_assignment_info(given["m"].user_data)
    assert info.next_rebalance_ms is not None
    assert "cannot decide a rebalance; every task stays where it is" in caplog.text


def test_copies_that_fail_do_not_fail_the_join(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Held):
        def positions(self) -> Mapping[TopicPartition, int]:
            raise OSError("the disk is gone")

    with caplog.at_level(logging.ERROR):
        joined = follower(Failing({})).assignor.metadata(TOPOLOGY.topics)
    info = decode_subscription_info(decode_subscription(joined.encode()).user_data or b"")
    assert info.offset_sums == {}
    assert "the disk is gone" in caplog.text


def test_topics_that_are_not_there_give_nobody_anything() -> None:
    one = follower()
    joined = {"m": through_the_wire(one.assignor.metadata(TOPOLOGY.topics))}
    assert one.assignor.assign(cluster(0), joined)["m"].partitions() == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"max.warmup.replicas": 0}, "max.warmup.replicas"),
        ({"probing.rebalance.interval.ms": 1_000}, "probing.rebalance.interval.ms"),
        ({"rack.aware.assignment.strategy": "min_traffic"}, "rack.aware.assignment.strategy"),
        ({"max.warmup": 2}, "'max.warmup' is not among"),
    ],
)
def test_a_config_that_is_none_is_refused_by_name(config: dict[str, Any], message: str) -> None:
    with pytest.raises((ScenarioError, ValueError), match=message):
        follower(config=config)


@pytest.mark.parametrize(
    "setting", [{"follow_up_ms": 99}, {"follow_ups": -1}, {"positions_interval_ms": "5"}]
)
def test_a_setting_out_of_its_bounds_is_refused_by_name(setting: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(setting))} is .* not a whole number in"):
        FollowerSettings(**setting)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([], "has no topics"),
        ([TopicGroup(())], "has no topics"),
        ([TopicGroup(("a",)), TopicGroup(("a",))], "topic a is named twice"),
        ([TopicGroup(("a",), {"x": "log", "y": "log"})], "topic log is named twice"),
    ],
)
def test_a_topology_that_is_none_is_refused(groups: list[TopicGroup], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Topology(groups)


def test_positions_are_told_when_they_change_and_each_minute_and_taken_back_at_the_end() -> None:
    process = ProcessId(0, 7)
    reports = PositionReports(TOPOLOGY, "orders", process, "one")
    log = TopicPartition("log", 0)

    def told(position: int | None, clock: float, end: int | None = 100) -> dict[bytes, Any]:
        records = reports.records(
            restoring=[],
            standby=[] if position is None else [ZERO],
            positions={} if position is None else {log: position},
            starts={log: 20},
            ends={} if end is None else {log: end},
            now_ms=5,
            clock=clock,
        )
        return {key: value and json.loads(value) for key, value in records.items()}

    key = json.dumps(["orders", str(process), "0_0"], separators=(",", ":")).encode()
    first = {
        "schema": 1,
        "group": "orders",
        "process": str(process),
        "client_id": "one",
        "task": "0_0",
        "role": "standby",
        "lags": {"log": 40},
        "leads": {"log": 40},
        "lag": 40,
        "at_ms": 5,
    }
    assert told(60, 1_000) == {key: first}
    assert told(60, 1_001) == {}
    assert told(60, 1_061) == {key: first}
    # Before the log's start there is nothing to read.
    assert told(0, 1_062)[key]["lag"] == 80
    unknown = told(60, 1_063, end=None)[key]
    assert unknown["lags"] == {"log": None}
    assert "lag" not in unknown
    assert told(None, 1_064) == {key: None}
    assert told(None, 1_065) == {}
