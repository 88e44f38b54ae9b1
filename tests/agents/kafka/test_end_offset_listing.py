"""What leaders answer, and what is made of those that don't."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka.errors import KafkaConnectionError, KafkaError
from confluent_kafka import KafkaError as ConfluentError
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka.clients import result_of
from caughtup.agents.kafka.end_offset_listing import (
    EndOffsetLister,
    EndOffsetListing,
    replica_racks,
)
from caughtup.agents.kafka.protocol.client import ClusterProtocol, ReplicaLogEnds
from caughtup.agents.kafka.protocol.cluster_answers import Broker
from caughtup.models.ids import TopicPartition

#: By partition of ``words``: its leader, and what the leader answers.
LED, REFUSED, LEADERLESS = (TopicPartition("words", number) for number in range(3))
NOT_LEADER = 6
PATIENCE_SECONDS = 0.1
ONE, TWO = TopicPartition("words", 1), TopicPartition("words", 2)


def everything(_: str) -> bool:
    return True


class Metadata:
    """An AdminClient that knows one topic, with the leader of each of its partitions."""

    def __init__(self, leaders: dict[int, int]) -> None:
        self.leaders = leaders
        self.knows = True

    def list_topics(self, timeout: float) -> Any:
        if not self.knows:
            raise KafkaException(ConfluentError(ConfluentError._TIMED_OUT))
        partitions = {
            number: SimpleNamespace(leader=leader, replicas=[3, 1, 2])
            for number, leader in self.leaders.items()
        }
        brokers = {
            broker: SimpleNamespace(id=broker, host="127.0.0.1", port=9_000 + broker)
            for broker in (1, 2)
        }
        return SimpleNamespace(
            topics={"words": SimpleNamespace(partitions=partitions)}, brokers=brokers
        )


class Leaders:
    """Connections to leaders, of which some hang or fail."""

    def __init__(self, end: int = 7) -> None:
        self.end = end
        self.errors: dict[TopicPartition, int] = {}
        self.failures: dict[int, KafkaError] = {}
        self.asked: Counter[int] = Counter()
        self.known: list[Broker] = []
        self.connections = SimpleNamespace(learn=lambda brokers: setattr(self, "known", [*brokers]))
        self._answered = {broker: asyncio.Event() for broker in (1, 2)}
        for event in self._answered.values():
            event.set()

    def hang(self, broker: int) -> None:
        self._answered[broker].clear()

    def answer(self, broker: int) -> None:
        self._answered[broker].set()

    async def list_ends(self, broker: int, partitions: Iterable[TopicPartition]) -> ReplicaLogEnds:
        self.asked[broker] += 1
        end = self.end
        await self._answered[broker].wait()
        if broker in self.failures:
            raise self.failures[broker]
        found = {one: end for one in partitions if one not in self.errors}
        return ReplicaLogEnds(found, self.errors)

    list_starts = list_last_stable = list_ends


class Listing:
    """A lister of a topic whose partition 1 is led by broker 1 and partition 2 by broker 2."""

    def __init__(self, leaders: dict[int, int] | None = None) -> None:
        self.metadata = Metadata(leaders or {1: 1, 2: 2})
        self.brokers = Leaders()
        self._lister = EndOffsetLister(cast(AdminClient, self.metadata))

    async def __call__(self, patience_seconds: float = PATIENCE_SECONDS) -> EndOffsetListing:
        protocol = cast(ClusterProtocol, self.brokers)
        return await self._lister.list_ends(protocol, everything, patience_seconds)

    def close(self) -> None:
        self._lister.close()


async def test_who_has_a_leader_and_no_offset_is_unanswered() -> None:
    listed = Listing({0: 1, 1: 1, 2: -1})
    listed.brokers.errors = {REFUSED: NOT_LEADER}
    listing = await listed()
    assert listing.found.keys() == {LED}
    assert listing.found[LED].end_offset == 7
    assert listing.present == {LED, REFUSED, LEADERLESS}
    assert listing.unanswered == {REFUSED}
    assert listing.leaderless == {LEADERLESS: (3,)}
    assert not listing.failed
    assert listed.brokers.known == [Broker(1, "127.0.0.1", 9_001), Broker(2, "127.0.0.1", 9_002)]


async def test_offsets_that_cannot_be_are_none() -> None:
    listed = Listing()
    listed.brokers.end = -1
    listing = await listed()
    assert not listing.found
    assert listing.unanswered == {ONE, TWO}


async def test_a_broker_that_hangs_keeps_no_others_waiting_and_is_waited_for_once() -> None:
    listed = Listing()
    listed.brokers.hang(2)
    listing = await listed()
    assert listing.found.keys() == {ONE}
    assert listing.unanswered == {TWO}
    for turn in range(2, 5):
        began = time.monotonic()
        assert (await listed(60.0)).found.keys() == {ONE}
        assert time.monotonic() - began < 30.0
        assert listed.brokers.asked == {1: 3 * turn, 2: 1}
    listed.close()


async def test_a_late_answer_is_as_old_as_its_question_and_the_next_one_is_waited_for() -> None:
    listed = Listing()
    listed.brokers.hang(2)
    first = await listed()
    listed.brokers.answer(2)
    await asyncio.sleep(0.002)  # so that what is asked from now on is later by a millisecond
    listed.brokers.hang(2)
    second = await listed()
    assert second.found[TWO].as_of_ms == second.as_of_ms == first.as_of_ms
    assert second.found[ONE].as_of_ms > first.as_of_ms
    listed.brokers.answer(2)
    assert (await listed()).unanswered == set()


async def test_a_broker_that_fails_costs_its_own_partitions_and_is_named() -> None:
    listed = Listing()
    listed.brokers.failures = {2: KafkaConnectionError("Connection refused")}
    listing = await listed()
    assert listing.found.keys() == {ONE}
    assert listing.unanswered == {TWO}
    assert listing.failed == {2: "Connection refused"}
    listed.brokers.failures = {}
    listing = await listed()
    assert listing.found.keys() == {ONE, TWO}
    assert not listing.failed


async def test_while_no_broker_gives_metadata_the_partitions_known_before_are_listed() -> None:
    listed = Listing()
    listed.metadata.knows = False
    with pytest.raises(KafkaException):
        await listed()
    listed.metadata.knows = True
    await listed()
    listed.metadata.knows = False
    assert (await listed()).found.keys() == {ONE, TWO}
    listed.brokers.hang(1)
    listed.brokers.hang(2)
    with pytest.raises(KafkaException):
        await listed()
    listed.close()


def test_another_event_loop_asks_again() -> None:
    """What an earlier one had asked ended with it."""
    listed = Listing()
    listed.brokers.hang(2)
    assert asyncio.run(listed()).found.keys() == {ONE}
    listed.brokers = Leaders()
    assert asyncio.run(listed()).found.keys() == {ONE, TWO}


def test_an_answer_that_never_comes_is_an_error_of_the_request() -> None:
    never: Future[int] = Future()
    with pytest.raises(KafkaException) as raised:
        result_of(never, 0.01)
    assert raised.value.args[0].code() == ConfluentError._TIMED_OUT


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
