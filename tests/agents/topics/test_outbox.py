"""What has to get to Kafka gets there, in its order; what can't is set aside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Container, Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from caughtup.agents.errors import UserError
from caughtup.agents.topics import outbox as module
from caughtup.agents.topics.outbox import Outbox
from caughtup.models.faults import SetAsideRecords

Log = list[tuple[str, bytes]]
Failure = int  # a code of Kafka's
Record = tuple[bytes | None, bytes | None]

TIMED_OUT, TOO_LARGE = KafkaError._MSG_TIMED_OUT, KafkaError.MSG_SIZE_TOO_LARGE


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0)


class Topic:
    """Keeps records as a topic does, but for those moments when it fails."""

    fence: Any = None

    def __init__(
        self,
        name: str,
        log: Log,
        failures: dict[bytes, int] | None = None,
        failure: Failure = TIMED_OUT,
    ) -> None:
        self.name = name
        self._log = log
        self._failures = failures or {}
        self._failure = failure

    async def send(
        self, *, key: bytes, value: bytes, headers: Mapping[str, bytes] | None
    ) -> Awaitable[None]:
        acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._failures.get(value, 0):
            self._failures[value] -= 1
            acknowledged.set_exception(KafkaException(KafkaError(self._failure)))
        else:
            self._log.append((self.name, value))
            self.headers = headers
            acknowledged.set_result(None)
        return acknowledged

    async def written(self, sought: Container[Record], since_ms: int) -> frozenset[Record]:
        found = ((b"g", value) for name, value in self._log if name == self.name)
        return frozenset(record for record in found if record in sought)


class ForgetfulTopic(Topic):
    """Takes records whose acknowledgements are lost as often as they are to fail."""

    unreadable = 0

    async def send(
        self, *, key: bytes, value: bytes, headers: Mapping[str, bytes] | None
    ) -> Awaitable[None]:
        if self._failures.get(value):
            self._log.append((self.name, value))
        return await super().send(key=key, value=value, headers=headers)

    async def written(self, sought: Container[Record], since_ms: int) -> frozenset[Record]:
        if self.unreadable:
            self.unreadable -= 1
            raise UserError("cannot read events")
        return await super().written(sought, since_ms)


class BatchingTopic(Topic):
    """Refuses all that is sent together with a record that is too large, as a broker does."""

    def __init__(self, name: str, log: Log, most_bytes: int) -> None:
        super().__init__(name, log)
        self._most_bytes = most_bytes
        self._batch: list[tuple[bytes, asyncio.Future[None]]] = []

    async def send(
        self, *, key: bytes, value: bytes, headers: Mapping[str, bytes] | None
    ) -> Awaitable[None]:
        loop = asyncio.get_running_loop()
        if not self._batch:
            loop.call_soon(self._answer)
        self._batch.append((value, loop.create_future()))
        return self._batch[-1][1]

    def _answer(self) -> None:
        batch, self._batch = self._batch, []
        refused = any(len(value) > self._most_bytes for value, _ in batch)
        for value, acknowledged in batch:
            if refused:
                acknowledged.set_exception(KafkaException(KafkaError(TOO_LARGE)))
            else:
                self._log.append((self.name, value))
                acknowledged.set_result(None)


class LimitedTopic(Topic):
    """Sends no record that is too large in the first place, as a producer does."""

    async def send(
        self, *, key: bytes, value: bytes, headers: Mapping[str, bytes] | None
    ) -> Awaitable[None]:
        if self._failures.get(value):
            raise KafkaException(KafkaError(self._failure))
        return await super().send(key=key, value=value, headers=headers)


async def test_what_fails_is_sent_again_and_nothing_behind_it_overtakes_another_topic(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log: Log = []
    failures = {b"decision": 2, b"second": 1}
    decisions, events = (Topic(name, log, failures) for name in ("decisions", "events"))
    outbox = Outbox(SetAsideRecords())
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


async def test_what_is_on_its_topic_is_not_sent_again_though_nobody_said_so() -> None:
    log: Log = []
    told: list[bytes] = []
    topic = ForgetfulTopic("events", log, {b"one": 1, b"three": 3})
    topic.unreadable = 2
    outbox = Outbox(SetAsideRecords())
    values = [b"one", b"two", b"three", b"four"]
    for value in values:
        outbox.put(topic, b"g", value, on_written=lambda value=value: told.append(value))
    async with asyncio.timeout(20):
        await outbox.flush()
    assert log == [("events", value) for value in values]
    assert sorted(told) == sorted(values)


async def test_what_was_on_its_way_when_a_flush_was_ended_is_not_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log: Log = []
    topic = Topic("events", log)
    slow = topic.send

    async def never_answered(**record: Any) -> Awaitable[None]:
        await slow(**record)
        return asyncio.get_running_loop().create_future()

    monkeypatch.setattr(topic, "send", never_answered)
    outbox = Outbox(SetAsideRecords())
    outbox.put(topic, b"g", b"one")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(outbox.flush(), 0.01)
    monkeypatch.setattr(topic, "send", slow)
    outbox.put(topic, b"g", b"two")
    await outbox.flush()
    assert log == [("events", b"one"), ("events", b"two")]


async def test_a_flush_that_was_ended_is_taken_up_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_RETRY_SECONDS", 60)
    log: Log = []
    topic = Topic("events", log, {b"one": 1})
    outbox = Outbox(SetAsideRecords())
    outbox.put(topic, b"g", b"one")
    flushing = asyncio.create_task(outbox.flush())
    await asyncio.sleep(0.01)
    flushing.cancel()
    await asyncio.gather(flushing, return_exceptions=True)
    assert log == []
    await outbox.flush()
    assert log == [("events", b"one")]


async def test_headers_go_with_their_record() -> None:
    topic = Topic("decisions", [])
    outbox = Outbox(SetAsideRecords())
    outbox.put(topic, b"g", b"decision", headers={"signature": b"s"})
    await outbox.flush()
    assert topic.headers == {"signature": b"s"}


@pytest.mark.parametrize("topic_class", [Topic, LimitedTopic])
@pytest.mark.parametrize("failure", [TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE])
async def test_a_record_that_is_refused_is_set_aside_and_the_others_go_on(
    topic_class: type[Topic], failure: Failure
) -> None:
    log: Log = []
    aside = SetAsideRecords()
    topic = topic_class("decisions", log, {b"large": 1_000}, failure)
    outbox = Outbox(aside)
    for group, value in ((b"a", b"one"), (b"big", b"large"), (b"c", b"three")):
        outbox.put(topic, group, value)
    async with asyncio.timeout(20):
        await outbox.flush()
    assert sorted(set(log)) == [("decisions", b"one"), ("decisions", b"three")]
    assert aside.counts == {("decisions", "too_large"): 1}
    (kept,) = aside.of("big")
    assert (kept.topic, kept.reason, kept.times) == ("decisions", "too_large", 1)
    assert kept.message.startswith("5 bytes: ")
    assert aside.of("a") == []


async def test_of_a_batch_that_is_refused_only_the_record_that_is_too_large_is_set_aside() -> None:
    log: Log = []
    aside = SetAsideRecords()
    topic = BatchingTopic("events", log, most_bytes=10)
    outbox = Outbox(aside)
    values = [b"1", b"2", b"much too large", b"4", b"also much too large", b"6"]
    for value in values:
        outbox.put(topic, b"g", value)
    async with asyncio.timeout(20):
        await outbox.flush()
    assert log == [("events", value) for value in values if len(value) <= 10]
    assert aside.counts == {("events", "too_large"): 2}
    outbox.put(topic, b"g", b"7")
    outbox.put(topic, b"g", b"8")
    await outbox.flush()
    assert log[-2:] == [("events", b"7"), ("events", b"8")]


@pytest.mark.parametrize("failure", [TIMED_OUT, KafkaError.UNKNOWN_TOPIC_OR_PART])
async def test_what_may_pass_is_tried_for_as_long_as_it_takes(failure: Failure) -> None:
    log: Log = []
    aside = SetAsideRecords()
    topic = Topic("decisions", log, {b"one": 50}, failure)
    outbox = Outbox(aside)
    outbox.put(topic, b"a", b"one")
    outbox.put(topic, b"b", b"two")
    await outbox.flush()
    # What was acknowledged isn't sent again for what is before it.
    assert log == [("decisions", b"two"), ("decisions", b"one")]
    assert aside.counts == {}


async def test_an_error_without_a_name_blocks_the_others_for_some_tries_only() -> None:
    log: Log = []
    aside = SetAsideRecords()
    passing = Topic("events", log, {b"once": 1}, KafkaError.UNKNOWN)
    blocked = Topic("decisions", log, {b"never": 1_000}, KafkaError.UNKNOWN)
    outbox = Outbox(aside)
    outbox.put(passing, b"a", b"once")
    outbox.put(blocked, b"b", b"never")
    outbox.put(blocked, b"c", b"then")
    async with asyncio.timeout(20):
        await outbox.flush()
    assert ("events", b"once") in log
    assert log[-1] == ("decisions", b"then")
    assert aside.counts == {("decisions", "unknown_error"): 1}


async def test_a_value_that_is_none_of_kafkas_is_set_aside() -> None:
    log: Log = []
    aside = SetAsideRecords()

    class OddTopic(Topic):
        async def send(
            self, *, key: bytes, value: bytes, headers: Mapping[str, bytes] | None
        ) -> Awaitable[None]:
            if value == b"odd":
                raise TypeError("not bytes")
            return await super().send(key=key, value=value, headers=headers)

    topic = OddTopic("decisions", log)
    outbox = Outbox(aside)
    outbox.put(topic, b"a", b"odd")
    outbox.put(topic, b"b", b"even")
    await outbox.flush()
    assert log == [("decisions", b"even")]
    assert aside.counts == {("decisions", "unsendable"): 1}


async def test_it_is_told_what_was_written_when_it_is_acknowledged_and_not_before() -> None:
    log: Log = []
    written: list[str] = []
    topic = Topic("decisions", log, {b"one": 2})
    outbox = Outbox(SetAsideRecords())
    outbox.put(topic, b"a", b"one", on_written=lambda: written.append("a"))
    assert written == []
    await outbox.flush()
    assert written == ["a"]


async def test_what_was_set_aside_of_a_group_is_forgotten_once_it_can_be_written_again() -> None:
    aside = SetAsideRecords()
    topic = Topic("decisions", [], {b"large": 1}, TOO_LARGE)
    outbox = Outbox(aside)
    outbox.put(topic, b"a", b"large")
    await outbox.flush()
    assert aside.of("a")
    outbox.put(topic, b"a", b"small")
    await outbox.flush()
    assert aside.of("a") == []
    assert aside.counts == {("decisions", "too_large"): 1}
