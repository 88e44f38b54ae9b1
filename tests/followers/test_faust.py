"""What a worker that follows on Faust says, takes and refuses, without any broker."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import faust
import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.coordinator.protocol import (
    ConsumerProtocol,
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from faust.exceptions import ImproperlyConfigured
from faust.transport.consumer import Consumer
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.followers.faust import FollowingAssignor, following
from caughtup.followers.python.faust.worker import join_user_data, split_user_data
from caughtup.models.errors import DecodeError, ScenarioError
from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.wire.group_metadata import decode_subscription
from caughtup.models.wire.user_data import decode_subscription_info, encode_subscription_info
from tests.support.followers.faust_workers import (
    COUNTS,
    GLOBAL,
    TABLES,
    TASKS,
    cluster,
    joined,
    make_app,
    make_assignor,
    read,
    through_the_wire,
)
from tests.support.sizes import daily

thorough = settings(print_blob=True, deadline=None, max_examples=daily(60, 150))


@pytest.fixture
async def worker(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FollowingAssignor]:
    """A worker whose consumer has subscribed, but reaches no broker."""
    assignor = make_assignor()
    consumer = AIOKafkaConsumer(bootstrap_servers="127.0.0.1:1", group_id="orders")
    consumer.subscribe(list(COUNTS))
    monkeypatch.setattr(FollowingAssignor, "_consumer", consumer)
    yield assignor
    await assignor.app.on_before_shutdown.send()
    await consumer.stop()


def sums_of(metadata: ConsumerProtocolMemberMetadata) -> dict[TaskId, int]:
    subscription = decode_subscription(metadata.encode())
    assert subscription.owned == ()
    return decode_subscription_info(subscription.user_data or b"").offset_sums


async def test_a_worker_says_what_it_runs_once_faust_has_restored_it(
    worker: FollowingAssignor,
) -> None:
    first = worker.metadata(COUNTS)
    assert sums_of(first) == {}
    given = worker.assign(cluster(), {"m": through_the_wire(first)})["m"]
    worker.on_assignment(ConsumerProtocol.ASSIGNMENT.decode(given.encode()))
    # Faust restores all tables, and so has to read their changelogs.
    consumer = worker._consumer
    assert {(one.topic, one.partition) for one in consumer.assignment()} == {
        (topic, number) for topic, count in COUNTS.items() for number in range(count)
    }
    assert worker.assigned_actives() == consumer.assignment()
    stateless = {TaskId(1, 0), TaskId(2, 0), TaskId(2, 1)}
    assert sums_of(worker.metadata(COUNTS)) == dict.fromkeys(stateless, -2)

    recovery = worker.app.tables.recovery
    await recovery.on_rebalance(consumer.assignment(), set(), consumer.assignment())
    # They are being restored: two changelogs each, of which one is half-way.
    recovery.active_offsets[
        next(iter(tp for tp in recovery.active_tps if tp == (TABLES[0], 3)))
    ] = 9
    being = sums_of(worker.metadata(COUNTS))
    assert being[TaskId(4, 3)] == 10
    assert being[TaskId(4, 2)] == 0
    await worker.app.on_rebalance_complete.send()
    again = worker.metadata(COUNTS)
    assert sums_of(again) == dict.fromkeys(TASKS, -2)
    assert again.encode() != worker.metadata(COUNTS).encode()

    # All goes to another one.
    had = consumer.assignment()
    other = {"m": joined(0, {}, url=str(worker._url)), "other": joined(1, dict.fromkeys(TASKS, -2))}
    given = worker.assign(cluster(), other)["m"]
    worker.on_assignment(ConsumerProtocol.ASSIGNMENT.decode(given.encode()))
    await recovery.on_rebalance(consumer.assignment(), had - consumer.assignment(), set())
    assert {one.topic for one in consumer.assignment()} == {GLOBAL}
    assert sums_of(worker.metadata(COUNTS)) == {}


async def test_an_assignment_that_no_faust_worker_made_is_refused(
    worker: FollowingAssignor,
) -> None:
    given = ConsumerProtocolMemberAssignment(
        0, [], encode_subscription_info(ProcessId(0, 1), {}, 1)
    )
    with pytest.raises(DecodeError, match="weren't written by a Faust worker"):
        worker.on_assignment(given)


async def test_the_worker_asks_for_the_next_rebalance_when_it_is_due(
    worker: FollowingAssignor, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr("caughtup.followers.faust.rejoin", asked.append)
    given = worker.assign(cluster(), {"m": through_the_wire(worker.metadata(COUNTS))})["m"]
    info = read(given)[1]
    assert info.next_rebalance_ms is not None
    worker.on_assignment(ConsumerProtocol.ASSIGNMENT.decode(given.encode()))
    due = worker._due
    assert due is not None
    worker.on_assignment(ConsumerProtocol.ASSIGNMENT.decode(given.encode()))
    assert due.cancelled()
    assert worker._due is not None
    assert asked == []


def test_the_application_names_it_in_one_setting() -> None:
    by_name = make_app(PartitionAssignor="caughtup.followers.faust:FollowingAssignor")
    assert type(by_name.assignor) is FollowingAssignor
    config = {"max.warmup.replicas": 5}
    made = make_app(PartitionAssignor=following(config), table_standby_replicas=2).assignor
    assert made._member._config == {"num.standby.replicas": 2, "max.warmup.replicas": 5}
    assert by_name.assignor.process != made.process
    assert (made.name, made.version) == ("caughtup", 0)


def test_an_application_that_faust_cannot_hand_tables_over_for_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match="processing_guarantee='exactly_once'"):
        make_assignor(processing_guarantee="exactly_once")


@pytest.mark.parametrize("config", [{"max.warmup.replicas": 0}, {"max.warmup": 2}])
def test_a_config_that_is_none_is_refused_by_name(config: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=next(iter(config))):
        following(config)


@pytest.mark.parametrize("data", [b"", b"faust", b"\x00\x00\x00\x09faust", b"abc"])
def test_user_data_that_end_otherwise_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        split_user_data(data)


@thorough
@given(st.binary(), st.binary())
def test_both_user_data_come_back(followers: bytes, fausts: bytes) -> None:
    assert split_user_data(join_user_data(followers, fausts)) == (followers, fausts)


@thorough
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(DecodeError):
        split_user_data(data + b"faust")


def test_what_this_leans_on_is_still_there() -> None:
    """It is private: whoever upgrades aiokafka or Faust has to look where it went."""
    complete = inspect.getsource(GroupCoordinator._on_join_complete)
    taken = complete.index("assign_from_subscribed(")
    ours = complete.index("assignor.on_assignment(")
    theirs = complete.index("subscription.assignment)")
    assert taken < ours < theirs < complete.index("on_partitions_assigned(")
    given = inspect.signature(SubscriptionState.assign_from_subscribed).parameters
    assert list(given) == ["self", "assignment"]
    assert "self._subscription = SubscriptionState(" in inspect.getsource(AIOKafkaConsumer.__init__)
    driver = inspect.getsource(inspect.getmodule(faust.transport.drivers.aiokafka.Consumer))
    assert "def _ensure_consumer(self)" in driver
    assert "self._thread = self._new_consumer_thread()" in inspect.getsource(
        inspect.getmodule(Consumer)
    )
