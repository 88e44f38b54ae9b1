"""What a real broker refuses is set aside, and what is behind it gets there."""

from __future__ import annotations

import asyncio

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
from caughtup.models.faults.set_aside import SetAsideRecords
from tests.integration.conftest import MakeTopic

TOPIC_BYTES, REQUEST_BYTES = 2_000, 50_000
#: What doesn't compress to less than the topic takes.
LARGE = bytes(number * number % 251 for number in range(40_000))
SMALL = [str(number).encode() for number in range(10)]


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
