"""What has to get to Kafka gets there, in its order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping

import pytest
from confluent_kafka import KafkaError, KafkaException

from caughtup.agents import outbox as module
from caughtup.agents.outbox import Outbox


class Topic:
    """Takes records as a topic does, but for those moments when it fails."""

    def __init__(self, name: str, log: list[tuple[str, bytes]], failures: dict[bytes, int]) -> None:
        self.name = name
        self._log = log
        self._failures = failures

    async def send(
        self, *, key: bytes, value: bytes, headers: Mapping[str, bytes] | None
    ) -> Awaitable[None]:
        acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._failures.get(value, 0):
            self._failures[value] -= 1
            acknowledged.set_exception(KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT)))
        else:
            self._log.append((self.name, value))
            self.headers = headers
            acknowledged.set_result(None)
        return acknowledged


async def test_what_fails_is_sent_again_and_nothing_behind_it_overtakes_another_topic(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0)
    log: list[tuple[str, bytes]] = []
    failures = {b"decision": 2, b"second": 1}
    decisions, events = (Topic(name, log, failures) for name in ("decisions", "events"))
    outbox = Outbox()
    outbox.put(decisions, b"g", b"decision")
    for value in (b"first", b"second"):
        outbox.put(events, b"g", value)
    await outbox.flush()
    assert log == [("decisions", b"decision"), ("events", b"first"), ("events", b"second")]
    assert [r.message.split(":")[0] for r in caplog.records] == [
        "writing to decisions",
        "writing to events",
    ]
    await outbox.flush()
    assert len(log) == 3


async def test_a_flush_that_was_ended_is_taken_up_by_the_next() -> None:
    log: list[tuple[str, bytes]] = []
    topic = Topic("events", log, {b"one": 1})
    outbox = Outbox()
    outbox.put(topic, b"g", b"one")
    flushing = asyncio.create_task(outbox.flush())
    await asyncio.sleep(0.01)
    flushing.cancel()
    await asyncio.gather(flushing, return_exceptions=True)
    assert log == []
    await outbox.flush()
    assert log == [("events", b"one")]


async def test_headers_go_with_their_record() -> None:
    topic = Topic("decisions", [], {})
    outbox = Outbox()
    outbox.put(topic, b"g", b"decision", headers={"signature": b"s"})
    await outbox.flush()
    assert topic.headers == {"signature": b"s"}
