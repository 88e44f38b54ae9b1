"""Real groups of other clients that change round by round: what their leaders decide is decided again.

CHANGING_GROUPS is how many groups change at once.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer

from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.integration.conftest import MakeTopic
from tests.integration.groups.test_explain import AIOKAFKA
from tests.support.service import Service, wait_for

GROUPS = int(os.environ.get("CHANGING_GROUPS", "3"))
_ROUNDS, _SECONDS = 6, 60


class LibrdkafkaGroups:
    """Members of librdkafka, all of them created, subscribed, polled and closed by one thread."""

    def __init__(self, cluster: EmbeddedCluster, assignor: str) -> None:
        self._config = {
            **cluster.client_config(),
            "partition.assignment.strategy": assignor,
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 10_000,
        }
        self._members: dict[str, list[Consumer]] = {}
        self._asked: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._ended = threading.Event()
        #: How many partitions the members of each group have.
        self.assigned: dict[str, int] = {}

    def run(self) -> None:
        """Poll until the end."""
        while not self._ended.is_set():
            while not self._asked.empty():
                self._asked.get()()
            for group, members in self._members.items():
                for member in members:
                    member.poll(0.002)
                self.assigned[group] = sum(len(member.assignment()) for member in members)
        for members in self._members.values():
            for member in members:
                member.close()

    def end(self) -> None:
        self._ended.set()

    def join(self, group: str, topics: list[str]) -> None:
        def act() -> None:
            member = Consumer({**self._config, "group.id": group})
            member.subscribe(topics)
            self._members.setdefault(group, []).append(member)

        self._ask(act)

    def leave(self, group: str, place: int) -> None:
        self._ask(lambda: self._members[group].pop(place).close())

    def subscribe(self, group: str, place: int, topics: list[str]) -> None:
        self._ask(lambda: self._members[group][place].subscribe(topics))

    def _ask(self, act: Callable[[], None]) -> None:
        done = threading.Event()

        def acted() -> None:
            act()
            done.set()

        self._asked.put(acted)
        assert done.wait(_SECONDS)


class AiokafkaGroups:
    """Members of aiokafka, on one event loop."""

    def __init__(self, cluster: EmbeddedCluster, assignor: str) -> None:
        self._config = {
            "bootstrap_servers": cluster.bootstrap_servers,
            "partition_assignment_strategy": [AIOKAFKA[assignor]],
            "heartbeat_interval_ms": 200,
            "session_timeout_ms": 10_000,
        }
        self._members: dict[str, list[AIOKafkaConsumer]] = {}
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()
        #: How many partitions the members of each group have.
        self.assigned: dict[str, int] = {}

    def run(self) -> None:
        """Poll until the end."""
        self._loop.run_until_complete(self._count())
        self._loop.close()

    async def _count(self) -> None:
        while not self._ended.is_set():
            for group, members in self._members.items():
                self.assigned[group] = sum(len(member.assignment()) for member in members)
            await asyncio.sleep(0.02)

    def end(self) -> None:
        for group in list(self._members):
            while self._members[group]:
                self.leave(group, 0)
        self._loop.call_soon_threadsafe(self._ended.set)

    def join(self, group: str, topics: list[str]) -> None:
        async def act() -> None:
            member = AIOKafkaConsumer(*topics, group_id=group, **self._config)
            self._members.setdefault(group, []).append(member)
            await member.start()

        self._ask(act())

    def leave(self, group: str, place: int) -> None:
        async def act() -> None:
            await self._members[group].pop(place).stop()

        self._ask(act())

    def subscribe(self, group: str, place: int, topics: list[str]) -> None:
        async def act() -> None:
            self._members[group][place].subscribe(topics)

        self._ask(act())

    def _ask(self, act: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(act, self._loop).result(_SECONDS)


ChangingGroups = LibrdkafkaGroups | AiokafkaGroups
_GROUPS = {"librdkafka": LibrdkafkaGroups, "aiokafka": AiokafkaGroups}


@contextmanager
def changing(cluster: EmbeddedCluster, client: str, assignor: str) -> Iterator[ChangingGroups]:
    groups: ChangingGroups = _GROUPS[client](cluster, assignor)
    polling = threading.Thread(target=groups.run)
    polling.start()
    try:
        yield groups
    finally:
        groups.end()
        polling.join()


@pytest.mark.parametrize(
    ("client", "assignor"),
    [
        ("librdkafka", "cooperative-sticky"),
        ("librdkafka", "range"),
        ("aiokafka", "sticky"),
        pytest.param("aiokafka", "roundrobin", marks=pytest.mark.thorough),
    ],
)
def test_what_leaders_of_other_clients_decide_is_decided_again(
    cluster: EmbeddedCluster, service: Service, make_topic: MakeTopic, client: str, assignor: str
) -> None:
    partitions = {make_topic(partitions=count): count for count in (5, 3, 4)}
    topics = sorted(partitions)
    rngs = {f"{client}-{assignor}-{topics[0]}-{number}": Random(number) for number in range(GROUPS)}
    members: dict[str, list[list[str]]] = {group: [] for group in rngs}

    def each() -> Counter[str]:
        found: Counter[str] = Counter()
        for sample in service.metrics():
            if sample.name == "caughtup_group_decisions_total" and sample.labels["group"] in rngs:
                found[sample.labels["group"]] += int(sample.value)
        return found

    def decisions() -> Counter[tuple[str, str]]:
        found: Counter[tuple[str, str]] = Counter()
        for sample in service.metrics():
            labels = sample.labels
            if sample.name == "caughtup_group_decisions_total" and labels["group"] in rngs:
                found[labels["client"], labels["result"]] += int(sample.value)
        return found

    def settled(before: Counter[str]) -> bool:
        # The first generations may be those by which __consumer_offsets is made, and are not counted.
        now = each()
        return all(
            (not before or now[group] > before[group])
            and groups.assigned.get(group)
            == sum(partitions[topic] for topic in {one for own in read for one in own})
            for group, read in members.items()
        )

    with changing(cluster, client, assignor) as groups:
        for number in range(_ROUNDS):
            before = each()
            for group, rng in rngs.items():
                read = members[group]
                happening = rng.random() if number > 2 else 0.0
                place = rng.randrange(len(read)) if read else 0
                some = rng.sample(topics, rng.choice((2, 3)))
                if happening < 0.4 or len(read) == 1:
                    read.append(some if rng.random() < 0.3 else topics)
                    groups.join(group, read[-1])
                elif happening < 0.7:
                    del read[place]
                    groups.leave(group, place)
                else:
                    while set(some) == set(read[place]):  # that would be no rebalance
                        some = rng.sample(topics, rng.choice((1, 2, 3)))
                    read[place] = some
                    groups.subscribe(group, place, some)
            wait_for(f"round {number}", partial(settled, before), _SECONDS)
        found = decisions()
    print(client, assignor, dict(found))
    assert {client for client, _ in found} == {client}
    assert found[client, "mismatch"] == 0
    assert found[client, "match"] > 0.9 * found.total()
