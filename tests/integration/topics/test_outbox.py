"""What a real broker refuses is set aside, what is behind it gets there, and all of it once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from functools import partial

import pytest

from caughtup.agents.process.health import Health
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics import outbox as module
from caughtup.agents.topics import publisher
from caughtup.agents.topics.outbox import Outbox
from caughtup.agents.topics.publisher import Publisher, TopicWriter
from caughtup.agents.topics.read_to_end import read_topic
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.models.faults import SetAsideRecords
from tests.chaos.cluster import ChaosCluster
from tests.integration.conftest import MakeTopic
from tests.support.service import wait_for

TOPIC_BYTES, REQUEST_BYTES = 2_000, 50_000
#: What doesn't compress to less than the topic takes.
LARGE = bytes(number * number % 251 for number in range(40_000))
SMALL = [str(number).encode() for number in range(10)]


@pytest.fixture
def behind_proxy() -> Iterator[ChaosCluster]:
    with ChaosCluster(nodes=1, controllers=1) as cluster:
        yield cluster


@pytest.mark.parametrize("value", [LARGE, LARGE * 2], ids=["by the broker", "by the producer"])
async def test_a_record_that_is_too_large_blocks_nobody(
    cluster: EmbeddedCluster,
    make_topic: MakeTopic,
    monkeypatch: pytest.MonkeyPatch,
    value: bytes,
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.1)
    monkeypatch.setitem(publisher._CONFIG, "message.max.bytes", REQUEST_BYTES)
    monkeypatch.setitem(publisher._CONFIG, "compression.type", "none")
    settings = Settings(bootstrap_servers=cluster.bootstrap_servers, topic_prefix="")
    name = make_topic("outbox", config={"max.message.bytes": str(TOPIC_BYTES)})
    writes = Publisher(settings, Health(), lambda: True)
    topic: TopicWriter = writes.topic(name)
    aside = SetAsideRecords()
    outbox = Outbox(aside)
    written: list[bytes] = []

    def put(key: bytes, value: bytes) -> None:
        outbox.put(topic, key, value, on_written=lambda: written.append(value))

    await writes.start()
    try:
        for small in SMALL[:5]:
            put(b"small", small)
        put(b"large", value)
        for small in SMALL[5:]:
            put(b"small", small)
        async with asyncio.timeout(30):
            await outbox.flush()
    finally:
        await writes.stop()
    found = [value for _, value in read_topic(settings, name, Progress())]
    assert list(dict.fromkeys(found)) == SMALL
    assert aside.counts == {(name, "too_large"): 1}
    (kept,) = aside.of("large")
    assert str(len(value)) in kept.message
    assert written == SMALL


async def test_what_a_broker_writes_after_its_time_is_up_is_there_once(
    cluster: EmbeddedCluster, make_topic: MakeTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(publisher._CONFIG, "message.timeout.ms", 500)
    settings = Settings(bootstrap_servers=cluster.bootstrap_servers, topic_prefix="")
    name = make_topic("outbox")
    health = Health()
    writes = Publisher(settings, health, lambda: True)
    topic, outbox = writes.topic(name), Outbox(SetAsideRecords())
    await writes.start()
    try:
        outbox.put(topic, b"g", b"before")
        await outbox.flush()
        nodes = [cluster._running_node(node).pid for node in cluster.running_nodes]
        for pid in nodes:
            os.kill(pid, signal.SIGSTOP)
        try:
            for small in SMALL:
                outbox.put(topic, b"g", small)
            flushing = asyncio.create_task(outbox.flush())
            given_up = partial(
                wait_for, "they are given up", lambda: health.probe_errors["publish"]
            )
            await asyncio.to_thread(given_up)
        finally:
            for pid in nodes:
                os.kill(pid, signal.SIGCONT)
        async with asyncio.timeout(30):
            await flushing
    finally:
        await writes.stop()
    found = [value for _, value in read_topic(settings, name, Progress())]
    assert found == [b"before", *SMALL]


async def test_what_was_written_when_its_connection_broke_is_there_once(
    behind_proxy: ChaosCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.1)
    servers = behind_proxy.behind_proxy().bootstrap_servers
    create_topics(behind_proxy, {"events": 1})
    settings = Settings(bootstrap_servers=servers, topic_prefix="")
    writes = Publisher(settings, Health(), lambda: True)
    topic, outbox = writes.topic("events"), Outbox(SetAsideRecords())
    await writes.start()
    try:
        outbox.put(topic, b"g", b"before")
        await outbox.flush()
        behind_proxy.proxy.lose_answer()
        for small in SMALL:
            outbox.put(topic, b"g", small)
        async with asyncio.timeout(30):
            await outbox.flush()
    finally:
        await writes.stop()
    found = [value for _, value in read_topic(settings, "events", Progress())]
    assert found == [b"before", *SMALL]
