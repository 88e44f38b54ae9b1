"""What a real broker refuses is set aside, and what is behind it gets there."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import faust
import pytest

from caughtup.agents import outbox as module
from caughtup.agents.kafka_config import faust_credentials
from caughtup.agents.outbox import Outbox, OutboxTopic
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topic_log import read_topic
from caughtup.demo.cluster import EmbeddedCluster
from caughtup.models.set_aside import SetAsideRecords
from tests.integration.conftest import MakeTopic

TOPIC_BYTES, REQUEST_BYTES = 2_000, 50_000
#: What doesn't compress.
LARGE = bytes(range(256)) * 16
SMALL = [str(number).encode() for number in range(10)]


@pytest.mark.parametrize("value", [LARGE, LARGE * 20], ids=["by the broker", "by the producer"])
async def test_a_record_that_is_too_large_blocks_nobody(
    cluster: EmbeddedCluster,
    make_topic: MakeTopic,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    value: bytes,
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.1)
    settings = Settings(bootstrap_servers=cluster.bootstrap_servers)
    app = faust.App(
        "test-outbox",
        broker=f"kafka://{cluster.bootstrap_servers.split(',')[0]}",
        broker_credentials=faust_credentials(settings),
        datadir=tmp_path,
        store="memory://",
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        producer_max_request_size=REQUEST_BYTES,
        key_serializer="raw",
        value_serializer="raw",
    )
    name = make_topic("outbox", config={"max.message.bytes": str(TOPIC_BYTES)})
    topic = OutboxTopic(app, topics=[name], key_serializer="raw", value_serializer="raw")
    aside = SetAsideRecords()
    written: list[bytes] = []

    def put(key: bytes, value: bytes) -> None:
        outbox.put(topic, key, value, on_written=lambda: written.append(value))

    outbox = Outbox(aside)
    await app.producer.start()
    try:
        for small in SMALL[:5]:
            put(b"small", small)
        put(b"large", value)
        for small in SMALL[5:]:
            put(b"small", small)
        async with asyncio.timeout(30):
            await outbox.flush()
    finally:
        await app.producer.stop()
        gc.collect()
    found = [value for _, value in read_topic(settings, name, Progress())]
    assert list(dict.fromkeys(found)) == SMALL
    assert aside.counts == {(name, "too_large"): 1}
    (kept,) = aside.of("large")
    assert str(len(value)) in kept.message
    assert written == SMALL
    assert caplog.messages == []  # nobody else says it, and of each record
