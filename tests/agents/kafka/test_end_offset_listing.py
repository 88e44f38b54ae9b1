"""What leaders answer, and what is made of those that don't: a client that answers as librdkafka."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka import end_offset_listing
from caughtup.agents.kafka.clients import result_of
from caughtup.agents.kafka.end_offset_listing import (
    EndOffsetLister,
    replica_racks,
)
from caughtup.models.ids import TopicPartition

#: By partition of ``words``: its leader, and the offset that the client has for it.
LED, LOST, REFUSED, LEADERLESS = (TopicPartition("words", number) for number in range(4))
ANSWERS: dict[int, int | None] = {0: 7, 1: -1001, 2: None, 3: None}
PATIENCE_SECONDS = 0.1


class Client:
    """An AdminClient whose cluster has one topic."""

    def list_topics(self, timeout: float) -> Any:
        partitions = {
            n: SimpleNamespace(leader=-1 if n == 3 else 1, replicas=[3, 1, 2]) for n in ANSWERS
        }
        topics = {"words": SimpleNamespace(partitions=partitions)}
        return SimpleNamespace(topics=topics, brokers={1: SimpleNamespace()})

    def list_offsets(self, asked: dict[Any, Any], **_: object) -> dict[Any, Future[Any]]:
        return {partition: self._answer(ANSWERS[partition.partition]) for partition in asked}

    def _answer(self, offset: int | None) -> Future[Any]:
        future: Future[Any] = Future()
        if offset is None:
            future.set_exception(KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE)))
        else:
            future.set_result(SimpleNamespace(offset=offset))
        return future


class HangingClient:
    """An AdminClient of two brokers, each of which leads the partition of its number.

    ``hangs``: brokers whose futures don't end before ``answer`` ends them.
    """

    def __init__(self, *hangs: int, end: int = 7) -> None:
        self.hangs = set(hangs)
        self.end = end
        self.knows = True
        self.asked: Counter[int] = Counter()
        self.destroyed = threading.Event()
        self._unanswered: list[Future[Any]] = []

    def __del__(self) -> None:
        self.destroyed.set()

    def list_topics(self, timeout: float) -> Any:
        if not self.knows:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        partitions = {number: SimpleNamespace(leader=number) for number in (1, 2)}
        return SimpleNamespace(topics={"words": SimpleNamespace(partitions=partitions)})

    def list_offsets(self, asked: dict[Any, Any], **_: object) -> dict[Any, Future[Any]]:
        (partition,) = asked
        self.asked[partition.partition] += 1
        future: Future[Any] = Future()
        if partition.partition in self.hangs:
            self._unanswered.append(future)
        else:
            future.set_result(SimpleNamespace(offset=self.end))
        return {partition: future}

    def answer(self) -> None:
        """Let the hanging broker answer."""
        self.hangs.clear()
        for future in self._unanswered:
            future.set_result(SimpleNamespace(offset=5))
        self._unanswered.clear()


ONE, TWO = TopicPartition("words", 1), TopicPartition("words", 2)


def lister(*clients: HangingClient) -> EndOffsetLister:
    made = deque(clients)
    return EndOffsetLister(lambda: cast(AdminClient, made.popleft()))


def test_who_has_a_leader_and_no_offset_is_unanswered() -> None:
    asking = EndOffsetLister(lambda: cast(AdminClient, Client()))
    listing = asking.list_ends(lambda _: True, PATIENCE_SECONDS)
    assert listing.found.keys() == {LED}
    assert listing.found[LED].end_offset == 7
    assert listing.present == {LED, LOST, REFUSED, LEADERLESS}
    assert listing.unanswered == {LOST, REFUSED}
    assert listing.leaderless == {LEADERLESS: (2, 3)}


def test_a_broker_that_hangs_keeps_no_others_waiting_and_is_waited_for_once() -> None:
    client = HangingClient(2)
    asking = lister(client)
    listing = asking.list_ends(lambda _: True, PATIENCE_SECONDS)
    assert listing.found.keys() == {ONE}
    assert listing.unanswered == {TWO}
    for turn in range(2, 5):
        began = time.monotonic()
        assert asking.list_ends(lambda _: True, 60.0).found.keys() == {ONE}
        assert time.monotonic() - began < 30.0
        assert client.asked == {1: 3 * turn, 2: 3}


def test_a_late_answer_is_as_old_as_its_question_and_the_next_one_is_waited_for() -> None:
    client = HangingClient(2)
    asking = lister(client)
    first = asking.list_ends(lambda _: True, PATIENCE_SECONDS)
    client.answer()
    time.sleep(0.002)  # so that what is asked from now on is later by a millisecond
    client.hangs = {2}
    second = asking.list_ends(lambda _: True, PATIENCE_SECONDS)
    assert second.found[TWO].end_offset == 5
    assert second.found[TWO].as_of_ms == second.as_of_ms == first.as_of_ms
    assert second.found[ONE].as_of_ms > first.as_of_ms
    client.answer()
    assert asking.list_ends(lambda _: True, PATIENCE_SECONDS).unanswered == set()


def test_while_the_broker_asked_for_metadata_hangs_the_partitions_known_before_are_listed() -> None:
    client = HangingClient()
    asking = lister(client)
    client.knows = False
    with pytest.raises(KafkaException):
        asking.list_ends(lambda _: True, PATIENCE_SECONDS)
    client.knows = True
    asking.list_ends(lambda _: True, PATIENCE_SECONDS)
    client.knows = False
    assert asking.list_ends(lambda _: True, PATIENCE_SECONDS).found.keys() == {ONE, TWO}
    client.hangs = {1, 2}
    with pytest.raises(KafkaException):
        asking.list_ends(lambda _: True, PATIENCE_SECONDS)


def test_a_client_whose_futures_never_end_is_replaced_once_that_is_certain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, ahead = time.monotonic, 0.0
    monkeypatch.setattr(end_offset_listing.time, "monotonic", lambda: clock() + ahead)
    wedged, other = HangingClient(1, 2), HangingClient(end=9)
    destroyed = wedged.destroyed
    asking = lister(wedged, other)
    del wedged  # the lister alone has it
    listing = asking.list_ends(lambda _: True, PATIENCE_SECONDS)
    assert not listing.found
    assert not listing.given_up
    ahead += end_offset_listing.WEDGED_SECONDS
    assert asking.list_ends(lambda _: True, PATIENCE_SECONDS).given_up == (1, 2)
    assert destroyed.wait(10)
    listing = asking.list_ends(lambda _: True, PATIENCE_SECONDS)
    assert not listing.given_up
    assert listing.found[ONE].end_offset == listing.found[TWO].end_offset == 9


def test_an_answer_that_never_comes_is_an_error_of_the_request() -> None:
    never: Future[int] = Future()
    with pytest.raises(KafkaException) as raised:
        result_of(never, 0.01)
    assert raised.value.args[0].code() == KafkaError._TIMED_OUT


class RackedClient:
    """An AdminClient of three brokers, of which one has no rack; a fourth one is down."""

    def describe_cluster(self, **_: object) -> Future[Any]:
        racks = {1: "a", 2: "b", 3: ""}
        nodes = [SimpleNamespace(id=broker, rack=rack) for broker, rack in racks.items()]
        described: Future[Any] = Future()
        described.set_result(SimpleNamespace(nodes=nodes))
        return described


def test_each_replica_has_its_brokers_rack() -> None:
    partitions = {0: SimpleNamespace(replicas=[2, 1]), 1: SimpleNamespace(replicas=[3, 4])}
    metadata = SimpleNamespace(
        topics={
            "words": SimpleNamespace(partitions=partitions),
            "others": SimpleNamespace(partitions=partitions),
        }
    )
    admin = cast(AdminClient, RackedClient())
    assert replica_racks(admin, metadata, lambda topic: topic == "words") == {
        TopicPartition("words", 0): ("b", "a"),
        TopicPartition("words", 1): (None, None),
    }
