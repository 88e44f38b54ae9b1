"""What may not be published waits, and what nobody takes is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from confluent_kafka import KafkaException

from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.topics import publisher as module
from caughtup.agents.topics.publisher import Publisher

#: Nobody listens there.
NOWHERE = Settings(bootstrap_servers="127.0.0.1:1", topic_prefix="own-")


@asynccontextmanager
async def running(health: Health, allowed: list[bool]) -> AsyncIterator[Publisher]:
    publisher = Publisher(NOWHERE, health, lambda: allowed[0])
    async with publisher:
        yield publisher


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module._CONFIG, "message.timeout.ms", 300)
    monkeypatch.setattr(module, "FLUSH_SECONDS", 0.5)


async def test_a_record_waits_until_it_may_be_published() -> None:
    allowed = [False]
    async with running(Health(), allowed) as publisher:
        sending = asyncio.create_task(publisher.topic("lag").send(key=b"k", value=b"v"))
        await asyncio.sleep(0.2)
        assert not sending.done()
        allowed[0] = True
        async with asyncio.timeout(10):
            acknowledged = await sending
            with pytest.raises(KafkaException, match="timed out"):
                await acknowledged


async def test_what_no_broker_takes_is_counted_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    health = Health()
    async with running(health, [True]) as publisher:
        topic = publisher.topic("lag")
        assert topic.name == "own-lag"
        sent = [await topic.send(key=b"k", value=None) for _ in range(3)]
        async with asyncio.timeout(10):
            await asyncio.wait(sent)
    assert health.probe_errors["publish"] == 3
    assert [r.message.split(":")[0] for r in caplog.records] == ["writing to own-lag"]
