"""What is written in transactions is there once and whole, whatever happens to brokers and topics."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from caughtup.agents.process.health import Health
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics import fenced, outbox
from caughtup.agents.topics.outbox import Outbox
from caughtup.agents.topics.publisher import Publisher
from caughtup.agents.topics.read_to_end import read_topic
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.models.faults import SetAsideRecords
from caughtup.models.records.topics import MOVEMENTS, RECOMMENDATIONS
from tests.chaos.cluster import ChaosCluster
from tests.support.service import wait_for
from tests.support.sizes import daily

#: What doesn't compress to less than the topic takes.
LARGE = bytes(number * number % 251 for number in range(40_000))
#: How many answers are lost, each at another moment of a transaction.
LOST = daily(3, 20)
SMALL = [str(number).encode() for number in range(10)]


@pytest.fixture(scope="module")
def behind_proxy() -> Iterator[ChaosCluster]:
    with ChaosCluster(nodes=1, controllers=1) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_RETRY_SECONDS", 0.1)


class Written:
    """Two topics that are written in transactions, and what readers of committed records get."""

    def __init__(self, cluster: EmbeddedCluster, servers: str | None = None) -> None:
        own = f"own-{uuid.uuid4().hex[:8]}"
        self.admin = AdminClient(cluster.client_config())
        self.settings = Settings(
            bootstrap_servers=servers or cluster.bootstrap_servers,
            application_id=own,
            topic_prefix=f"{own}-",
        )
        self.health, self.aside = Health(), SetAsideRecords()
        self.outbox = Outbox(self.aside)
        self._cluster = cluster
        create_topics(cluster, {self.name(topic): 1 for topic in (RECOMMENDATIONS, MOVEMENTS)})

    def name(self, topic: str) -> str:
        return f"{self.settings.topic_prefix}{topic}"

    @asynccontextmanager
    async def publisher(self) -> AsyncIterator[Publisher]:
        async with Publisher(self.settings, self.health, lambda: True) as publisher:
            self.topics = {name: publisher.topic(name) for name in (RECOMMENDATIONS, MOVEMENTS)}
            yield publisher

    async def write(self, *values: bytes) -> None:
        """Put a decision and its movements, and wait until they are written."""
        for number, value in enumerate(values):
            self.outbox.put(self.topics[MOVEMENTS if number else RECOMMENDATIONS], b"g", value)
        async with asyncio.timeout(40):
            await self.outbox.flush()

    def found(self, topic: str) -> list[bytes | None]:
        """Return the committed values of a topic."""
        return [value for _, value in read_topic(self.settings, self.name(topic), Progress())]


@pytest.mark.parametrize("value", [LARGE, LARGE * 4], ids=["by the broker", "by the producer"])
async def test_of_a_transaction_only_the_record_that_is_refused_is_set_aside(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, value: bytes
) -> None:
    monkeypatch.setitem(fenced.RECORDS, "message.max.bytes", 100_000)
    monkeypatch.setitem(fenced.RECORDS, "compression.type", "none")
    written = Written(cluster)
    name = written.name(MOVEMENTS)
    smaller = ConfigEntry("max.message.bytes", "2000", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[smaller])
    written.admin.incremental_alter_configs([topic])[topic].result(30)
    async with written.publisher():
        await written.write(b"decision", *SMALL[:5], value, *SMALL[5:])
        await written.write(b"next", b"movement")
    assert written.found(RECOMMENDATIONS) == [b"decision", b"next"]
    assert written.found(MOVEMENTS) == [*SMALL, b"movement"]
    assert written.aside.counts == {(name, "too_large"): 1}
    assert written.health.broken is None


async def test_a_writer_that_another_replaced_is_refused_and_its_process_is_to_end(
    cluster: EmbeddedCluster,
) -> None:
    written = Written(cluster)
    other = Written.__new__(Written)
    other.__dict__ |= written.__dict__ | {"health": Health(), "outbox": Outbox(SetAsideRecords())}
    async with written.publisher() as first, other.publisher() as second:
        await first.fence.begin()
        await written.write(b"first", b"its movement")
        await second.fence.begin()
        refused = first.topic(RECOMMENDATIONS)
        with pytest.raises(KafkaException):
            await (await refused.send(key=b"g", value=b"late"))
        assert written.health.broken is not None
        assert f"transactional id {written.settings.application_id}" in written.health.broken
        await other.write(b"second", b"another movement")
    assert written.found(RECOMMENDATIONS) == [b"first", b"second"]
    assert other.health.broken is None


async def test_topics_made_anew_are_written_again(cluster: EmbeddedCluster) -> None:
    written = Written(cluster)
    async with written.publisher() as publisher:
        await written.write(b"before", b"its movement")
        names = [written.name(topic) for topic in (RECOMMENDATIONS, MOVEMENTS)]
        for deleted in written.admin.delete_topics(names).values():
            deleted.result(30)
        create_topics(cluster, dict.fromkeys(names, 1))
        publisher.replace_client()
        await written.write(b"after", b"its movement")
        await written.write(b"later")
    assert written.found(RECOMMENDATIONS) == [b"after", b"later"]
    assert written.found(MOVEMENTS) == [b"its movement"]
    assert written.health.broken is None


async def test_answers_that_are_lost_double_nothing(behind_proxy: ChaosCluster) -> None:
    written = Written(behind_proxy, behind_proxy.behind_proxy().bootstrap_servers)
    expected = []
    async with written.publisher():
        for number in range(LOST):
            writing = asyncio.create_task(written.write(b"d%d" % number, *SMALL))
            expected.append(b"d%d" % number)
            await asyncio.sleep(0.004 * number)
            behind_proxy.proxy.lose_answer()
            await writing
    assert written.found(RECOMMENDATIONS) == expected
    assert written.found(MOVEMENTS) == SMALL * len(expected)
    assert written.health.broken is None


@pytest.mark.thorough
async def test_it_goes_on_once_the_coordinator_and_the_leader_are_back(
    behind_proxy: ChaosCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(fenced.RECORDS, "message.timeout.ms", 500)
    written = Written(behind_proxy)
    async with written.publisher() as publisher:
        await written.write(b"before")
        pid = behind_proxy.process(1).pid
        os.kill(pid, signal.SIGSTOP)
        try:
            writing = asyncio.create_task(written.write(b"meanwhile", *SMALL))
            await asyncio.to_thread(
                wait_for, "it fails", lambda: written.health.probe_errors["publish"]
            )
        finally:
            os.kill(pid, signal.SIGCONT)
        await writing
        behind_proxy.kill_node(1)
        writing = asyncio.create_task(written.write(b"killed", *SMALL))
        await asyncio.to_thread(behind_proxy.start_nodes, [1])
        await writing
        publisher.replace_client()
        await written.write(b"after")
    assert written.found(RECOMMENDATIONS) == [b"before", b"meanwhile", b"killed", b"after"]
    assert written.found(MOVEMENTS) == SMALL * 2
    assert written.health.broken is None
