"""An application in Python that follows the real service, on real Kafka."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.followers.python.kafka.recommendations import RecommendationReader
from caughtup.followers.python.settings import FollowerSettings
from caughtup.followers.python.tables import ChangelogTables
from caughtup.followers.python.topology import TopicGroup, Topology
from caughtup.models.assignors.following.recommendation import FollowedRecommendation
from caughtup.models.ids import TaskId
from tests.integration.conftest import MakeTopic
from tests.models.assignors.following.test_follower import one_runs_all, record
from tests.models.security.test_signing import KEY, line
from tests.support.followers.python_application import TABLE, PythonMember, wait_until
from tests.support.followers.service_records import assert_checked, position_reports
from tests.support.followers.streams_application import write_bomb
from tests.support.service import Service, commit

pytestmark = pytest.mark.thorough

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
            self.members.append(member)
            await member.start()

    async def stop(self, name: str) -> None:
        (member,) = (one for one in self.members if one.name == name)
        self.members.remove(member)
        await member.stop()

    def spread(self) -> list[int]:
        return sorted(len(member.tables.active) for member in self.members)

    def holds(self, value: bytes) -> bool:
        """Return whether the running tables have this value for every key, each once."""
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
        for member in self.members:
            await member.stop()


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
    cluster: EmbeddedCluster,
    make_topic: MakeTopic,
    tmp_path: Path,
) -> None:
    # The first commit of a cluster waits until there is a topic for commits.
    commit(cluster, "anybody", make_topic(), 0)
    keys = tmp_path / "keys"
    keys.write_text(line(KEY.name))
    service = Service(cluster, signing_key_file=str(keys))
    await asyncio.to_thread(service.start)
    try:
        async with started(
            cluster,
            make_topic,
            topic_prefix=service.topic(""),
            # Without end: only what is recommended moves anything.
            follow_ups=1_000_000,
            signing_key_file=keys,
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
            tasks = {str(task) for task, _ in three}
            await asyncio.to_thread(assert_reported, cluster, service, application, tasks)
    finally:
        service.process.terminate(10)


def assert_reported(
    cluster: EmbeddedCluster, service: Service, application: Application, tasks: set[str]
) -> None:
    """The third one's copies were reported while they warmed up, and taken back after."""
    process = str(application.members[2].follower.process)
    reports = position_reports(cluster, service, application.group, process, tasks)
    for seen in reports.values():
        *copies, running = seen
        assert running is None
        standby = [report for report in copies if report["role"] == "standby"]
        # Between taking over and running it makes sure that it has everything.
        assert copies[: len(standby)] == standby
        assert all(report["role"] == "restoring" for report in copies[len(standby) :])
        assert standby[-1]["lag"] <= ACCEPTABLE
        assert standby[-1]["leads"][application.changelog] >= RECORDS - ACCEPTABLE


async def test_without_the_service_the_group_still_balances_and_creates_no_topic(
    cluster: EmbeddedCluster, make_topic: MakeTopic
) -> None:
    prefix = f"nobody-{uuid.uuid4().hex[:8]}-"
    async with started(cluster, make_topic, topic_prefix=prefix, follow_ups=1) as application:
        await application.write(b"old")
        await application.start("one")
        await application.wait("all is read", lambda: application.holds(b"old"))
        await application.start("two")
        two = application.members[1].tables
        # The second one warms up two tasks, which is as many as there may be.
        await application.wait("warm-ups", lambda: two.standby)
        assert len(two.standby) == 2
        warming = two.standby
        await application.wait(
            "they are warm",
            lambda: all(len(application.members[1].table(t.partition)) == RECORDS for t in warming),
        )
        # Another one brings another rebalance, and what is caught up by then is handed over.
        await application.start("three")
        await application.wait("two are handed over", lambda: two.active)
        assert two.active <= warming
        await application.write(b"new")
        await application.wait("all goes on", lambda: application.holds(b"new"))
    admin = AdminClient(cluster.client_config())
    assert [name for name in admin.list_topics(timeout=30).topics if name.startswith(prefix)] == []


async def test_who_leaves_loses_nothing(cluster: EmbeddedCluster, make_topic: MakeTopic) -> None:
    async with started(cluster, make_topic, topic_prefix="nobody-", follow_ups=0) as application:
        await application.write(b"old")
        await application.start("one", "two")
        await application.wait("all is read", lambda: application.holds(b"old"))
        await application.stop("one")
        await application.wait("the other one has all", lambda: application.spread() == [6])
        await application.write(b"new")
        await application.wait("all goes on", lambda: application.holds(b"new"))
        for task, _ in application.members[0].tables.begun:
            assert len(application.members[0].table(task.partition)) == RECORDS


async def test_an_active_runs_once_it_has_what_another_process_wrote_meanwhile(
    cluster: EmbeddedCluster, make_topic: MakeTopic
) -> None:
    """As after a session that timed out without this process noticing."""
    topology = Topology([TopicGroup(("any",), {TABLE: make_topic("log")})])
    connection = {"bootstrap_servers": cluster.bootstrap_servers}
    task, resumed = TaskId(0, 0), []
    async with AIOKafkaProducer(**connection) as producer:
        tables, other = (ChangelogTables(connection, topology, producer) for _ in range(2))
        running = [asyncio.create_task(one.run()) for one in (tables, other)]
        try:
            tables.assigned(frozenset({task}), frozenset(), resumed.append)
            await wait_until("the first one runs", lambda: resumed == [task])
            assert tables.restored(task)
            await tables.put(task, TABLE, b"a", b"1")
            await tables.put(task, TABLE, b"b", b"1")
            await tables.flush()
            assert list(tables.positions().values()) == [2]

            other.assigned(frozenset({task}), frozenset(), resumed.append)
            await wait_until("the second one runs", lambda: resumed == [task] * 2)
            assert other.table(task, TABLE) == {b"a": b"1", b"b": b"1"}
            await other.put(task, TABLE, b"a", b"2")
            await other.put(task, TABLE, b"b", None)
            await other.flush()
            assert tables.table(task, TABLE) == {b"a": b"1", b"b": b"1"}

            tables.assigned(frozenset({task}), frozenset(), resumed.append)
            assert tables.restored(task), "it says that it runs, as before"
            await wait_until("the first one runs again", lambda: resumed == [task] * 3)
            assert tables.table(task, TABLE) == {b"a": b"2"}

            # Who hands over goes on as a standby from where it was.
            other.assigned(frozenset(), frozenset({task}), resumed.append)
            await tables.put(task, TABLE, b"c", b"3")
            await wait_until("it follows", lambda: other.table(task, TABLE).get(b"c") == b"3")
            assert not other.restored(task)
            other.assigned(frozenset(), frozenset(), resumed.append)
            assert other.positions() == {}
            assert other.table(task, TABLE) == {}
            assert len(resumed) == 3
        finally:
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)


async def test_what_would_be_too_large_once_it_is_decompressed_is_passed_over(
    cluster: EmbeddedCluster, make_topic: MakeTopic, caplog: pytest.LogCaptureFixture
) -> None:
    topic = make_topic("recommended")
    connection = {"bootstrap_servers": cluster.bootstrap_servers}
    newest = record(one_runs_all(), {1: (("0_0", "0_1"), ()), 2: ((), ())})
    await asyncio.to_thread(write_bomb, cluster, topic, "orders", 40 << 20)
    async with AIOKafkaProducer(**connection, compression_type="gzip") as producer:
        await producer.send_and_wait(topic, json.dumps(newest).encode(), b"orders")
    reader = RecommendationReader(connection, topic, "orders")
    reading = asyncio.create_task(reader.run())
    try:
        await wait_until("it is read", reader.known.is_set)
        read, _ = reader.newest()
        assert isinstance(read, FollowedRecommendation)
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    assert "passed over the records from offset 0 on" in caplog.text
