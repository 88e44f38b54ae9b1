"""An application in Python that follows the real service, on real Kafka."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaProducer

from caughtup.demo.cluster import EmbeddedCluster
from caughtup.followers.python.settings import FollowerSettings
from caughtup.followers.python.topology import TopicGroup, Topology
from tests.integration.conftest import MakeTopic
from tests.support.following import read_topic
from tests.support.python_application import TABLE, PythonMember, wait_until
from tests.support.service import Service, commit

PARTITIONS = 6
RECORDS = 300
ACCEPTABLE = 10
CONFIG = {"acceptable.recovery.lag": ACCEPTABLE, "probing.rebalance.interval.ms": 60_000}
# Further apart than clocks may be: rebalances of the same look are told apart by their times.
SOON = {"follow_up_ms": 1_500, "positions_interval_ms": 200}


class Application:
    """An application's topics, and its members as they come and go."""

    def __init__(
        self, cluster: EmbeddedCluster, make_topic: MakeTopic, settings: FollowerSettings
    ) -> None:
        self.group = f"python-{uuid.uuid4().hex[:8]}"
        self.source = make_topic("placed", PARTITIONS)
        self.changelog = make_topic("latest", PARTITIONS, {"cleanup.policy": "compact"})
        self.topology = Topology([TopicGroup((self.source,), {TABLE: self.changelog})])
        self.members: list[PythonMember] = []
        self._cluster = cluster
        self._settings = settings
        self._stack = AsyncExitStack()

    async def write(self, value: bytes) -> None:
        """Write a record of each key, ``RECORDS`` of them to each partition."""
        async with AIOKafkaProducer(bootstrap_servers=self._cluster.bootstrap_servers) as producer:
            for partition in range(PARTITIONS):
                for number in range(RECORDS):
                    await producer.send(self.source, value, b"%d" % number, partition=partition)

    async def start(self, *names: str) -> None:
        for name in names:
            member = PythonMember(
                self._cluster.bootstrap_servers,
                self.group,
                self.topology,
                name,
                self._settings,
                CONFIG,
            )
            await member.start()
            self._stack.push_async_callback(member.stop)
            self.members.append(member)

    def spread(self) -> list[int]:
        return sorted(len(member.tables.active) for member in self.members)

    def holds(self, value: bytes) -> bool:
        """Tell whether the running tables have this value for every key, each once."""
        found = [
            (task.partition, member.table(task.partition))
            for member in self.members
            for task in member.tables.active
        ]
        wanted = {b"%d" % number: value for number in range(RECORDS)}
        return sorted(found) == [(partition, wanted) for partition in range(PARTITIONS)]

    async def wait(self, what: str, look: Any) -> None:
        await wait_until(what, look, self.members)

    async def close(self) -> None:
        await self._stack.aclose()


@asynccontextmanager
async def started(
    cluster: EmbeddedCluster, make_topic: MakeTopic, **settings: Any
) -> AsyncIterator[Application]:
    application = Application(cluster, make_topic, FollowerSettings(**{**SOON, **settings}))
    try:
        yield application
    finally:
        await application.close()


async def test_a_new_member_gets_tasks_once_it_is_warm_as_the_service_recommends(
    cluster: EmbeddedCluster, make_topic: MakeTopic
) -> None:
    # The first commit of a cluster waits until there is a topic for commits.
    commit(cluster, "anybody", make_topic(), 0)
    service = Service(cluster)
    await asyncio.to_thread(service.start)
    try:
        async with started(
            cluster,
            make_topic,
            topic_prefix=service.topic(""),
            # Without end: only what is recommended moves anything.
            follow_ups=1_000_000,
        ) as application:
            await application.write(b"old")
            await application.start("one", "two")
            await application.wait("all is read", lambda: application.holds(b"old"))
            await application.wait("three each", lambda: application.spread() == [3, 3])
            await application.start("three")
            await application.wait("two each", lambda: application.spread() == [2, 2, 2])
            await application.write(b"new")
            await application.wait("all goes on", lambda: application.holds(b"new"))
            three = application.members[2].tables.begun
            assert len(three) == 2
            for task, position in three:
                assert position >= RECORDS - ACCEPTABLE, f"{task} was handed over cold"
            await asyncio.to_thread(assert_checked, cluster, service, application.group)
    finally:
        service.process.terminate(10)


def assert_checked(cluster: EmbeddedCluster, service: Service, group: str) -> None:
    """Every rebalance was told and checked: the rules were kept, and members got their part."""
    consumer = read_topic(cluster, service.topic("recommended-assignments"))
    try:
        records = [json.loads(one.value()) for one in consumer.consume(10_000, timeout=5)]
    finally:
        consumer.close()
    leaders = [one["leader"] for one in records if one["group"] == group]
    assert len(leaders) > 3
    assert {one["assignor"] for one in leaders} == {"FollowingTaskAssignor"}, leaders
    wrong = [one for one in leaders if one["result"] == "mismatch"]
    assert wrong == []
    assert service.value("exact_decisions_total", group=group, result="mismatch") == 0
