"""When the end-offset probe publishes what it saw: as it changes, and as readers need it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from caughtup.agents import end_offsets
from caughtup.agents.clock import now_ms
from caughtup.agents.end_offsets import EndOffsetsProbe
from caughtup.agents.kafka.end_offset_listing import EndOffsetLister, EndOffsetListing
from caughtup.agents.probes.end_offsets import PROBE
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.topics.reports import end_offsets as applied_ends
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.sharing import Lister, Peer
from tests.support.groups.records import SOURCE, START_MS, commit
from tests.support.states import cluster_state, read

PARTITION = TopicPartition("orders-in", 3)


def seen(end: int, at_ms: int) -> EndOffsets:
    return EndOffsets(0, end, end, at_ms, end)


@pytest.fixture
def probe() -> EndOffsetsProbe:
    """A probe that published a look, which its reader took."""
    topic: Any = None
    state = cluster_state()
    made = EndOffsetsProbe(Settings(), Health(), state, topic, asyncio.Event())
    made._published[PARTITION] = seen(10, START_MS)
    state.apply_ends(PARTITION, seen(10, START_MS))
    return made


@pytest.mark.parametrize(
    ("end", "after_ms", "news"),
    [(11, 300, True), (10, 300, False), (10, 59_999, False), (10, 60_000, True)],
)
def test_what_changed_is_news_and_what_did_not_is_each_minute(
    probe: EndOffsetsProbe, end: int, after_ms: int, news: bool
) -> None:
    assert probe._is_due(PARTITION, seen(end, START_MS + after_ms)) == news


def test_what_readers_lack_is_news_soon(probe: EndOffsetsProbe) -> None:
    probe._state.apply_ends(PARTITION, None)
    assert not probe._is_due(PARTITION, seen(10, START_MS + 4_999))
    assert probe._is_due(PARTITION, seen(10, START_MS + 5_000))


def test_what_somebody_else_wrote_is_put_right_soon(probe: EndOffsetsProbe) -> None:
    probe._state.apply_ends(PARTITION, seen(999, START_MS + 200))
    assert not probe._is_due(PARTITION, seen(10, START_MS + 4_999))
    assert probe._is_due(PARTITION, seen(10, START_MS + 5_000))


def test_a_clock_that_was_set_back_keeps_nothing_from_being_said(probe: EndOffsetsProbe) -> None:
    assert probe._is_due(PARTITION, seen(10, START_MS - 3_600_000))


def test_the_probe_is_as_old_as_what_a_silent_leader_last_said(probe: EndOffsetsProbe) -> None:
    other = TopicPartition("orders-in", 4)
    both, later_ms = {PARTITION, other}, START_MS + 9_000

    def as_of(found: dict[TopicPartition, EndOffsets], *unanswered: TopicPartition) -> int:
        return probe._complete_as_of(EndOffsetListing(later_ms, found, both, set(unanswered)))

    # One that never answered leaves nothing that could be old.
    assert as_of({PARTITION: seen(10, START_MS)}, other) == later_ms
    assert as_of({PARTITION: seen(10, START_MS), other: seen(5, START_MS + 1)}) == later_ms
    later = {PARTITION: seen(12, later_ms)}
    assert as_of(later, other) == START_MS + 1
    # Without a leader nobody writes to it; with one that is silent it is as old as it was.
    assert as_of(later) == later_ms
    assert as_of(later, other) == START_MS + 1


def test_what_another_instance_listed_is_as_old_as_it_was_then(probe: EndOffsetsProbe) -> None:
    assert (
        probe._complete_as_of(EndOffsetListing(START_MS + 9_000, {}, {PARTITION}, {PARTITION}))
        == START_MS
    )


def test_until_its_first_round_is_read_figures_are_as_old_as_what_was_there(
    probe: EndOffsetsProbe,
) -> None:
    """The first round's records come one by one: the first to come makes no other newer."""
    probe._note_what_was_read()
    probe._state.apply_ends(TopicPartition("orders-in", 4), seen(12, START_MS + 9_000))
    probe._note_what_was_read()
    assert probe._health.probed_ms == {PROBE: START_MS}


def test_until_the_next_round_taken_groups_are_as_old_as_the_oldest_that_others_listed(
    probe: EndOffsetsProbe,
) -> None:
    other, unread = TopicPartition("orders-in", 4), TopicPartition("unread", 0)
    probe._state.apply_ends(other, seen(12, START_MS + 9_000))
    probe._state.apply_ends(unread, seen(7, START_MS - 9_000))
    probe._health.succeeded(PROBE, START_MS + 9_500)
    probe.groups_taken()
    assert probe._health.probed_ms == {PROBE: START_MS + 9_500}, "no group reads any"
    read(probe._state, commit(3, 5, topic="orders-in", group="g"))
    probe.groups_taken()
    assert probe._health.probed_ms == {PROBE: START_MS}
    assert probe._hurry.is_set()


@pytest.mark.parametrize("is_read", [True, False])
async def test_what_was_listed_counts_as_seen_once_readers_have_it(
    is_read: bool, probe: EndOffsetsProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    later_ms = START_MS + 9_000
    found = {PARTITION: seen(12, later_ms)}
    listing = EndOffsetListing(later_ms, found, {PARTITION}, set())

    async def send(*, key: bytes, value: bytes | None) -> None:
        if is_read:
            asyncio.get_running_loop().call_later(
                0.02, applied_ends.apply_record, probe._state, key, value
            )

    async def list_ends(*_: object) -> EndOffsetListing:
        return listing

    lister = SimpleNamespace(list_ends=list_ends, topic_ids=lambda _: {})
    monkeypatch.setattr(probe._observer, "_lister", cast("EndOffsetLister", lister))
    monkeypatch.setattr(probe, "_topic", SimpleNamespace(send=send))
    monkeypatch.setattr(end_offsets, "_ROUND_TRIP_SECONDS", 0.2)
    assert await probe._round() == (later_ms if is_read else None)


async def test_what_no_reader_has_yet_is_not_seen_because_nothing_changed_since(
    probe: EndOffsetsProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker of our own topic is gone, and with it what lets the logs' ends move."""
    monkeypatch.setattr(end_offsets, "_ROUND_TRIP_SECONDS", 0.05)
    sent: list[tuple[bytes, bytes | None]] = []
    listed_ms = iter(range(START_MS + 1_000, START_MS + 9_000, 1_000))

    async def send(*, key: bytes, value: bytes | None) -> None:
        sent.append((key, value))

    async def list_ends(*_: object) -> EndOffsetListing:
        at_ms = next(listed_ms)
        return EndOffsetListing(at_ms, {PARTITION: seen(12, at_ms)}, {PARTITION}, set())

    lister = SimpleNamespace(list_ends=list_ends, topic_ids=lambda _: {})
    monkeypatch.setattr(probe._observer, "_lister", cast("EndOffsetLister", lister))
    monkeypatch.setattr(probe, "_topic", SimpleNamespace(send=send))
    assert await probe._round() is None
    assert await probe._round() is None
    assert len(sent) == 1
    applied_ends.apply_record(probe._state, *sent[0])
    assert await probe._round() == START_MS + 3_000


async def test_other_instances_hear_of_each_round_and_of_a_leader_that_does_not_answer(
    probe: EndOffsetsProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, other = probe._state, TopicPartition("payments", 0)
    read(state, commit(3, 5), commit(0, 5, topic="payments"))
    state.held.name, state.held.numbers = "a:1", frozenset({0})
    sent: list[dict[str, Any]] = []
    now, silent = now_ms(), set[TopicPartition]()

    async def send(*, key: bytes, value: bytes | None) -> None:
        applied_ends.apply_record(state, key, value)
        sent.append(json.loads(value or b"{}"))

    async def list_ends(_: object, wants: Callable[[str], bool], __: float) -> EndOffsetListing:
        wanted = {one for one in (PARTITION, other) if wants(one.topic)}
        found = {one: seen(500, now) for one in wanted - silent}
        return EndOffsetListing(now, found, wanted, wanted & silent)

    async def listed() -> list[tuple[str, str]]:
        sent.clear()
        assert await probe._round() is not None
        return [(one["topic"], one.get("listed_by", "").partition("/")[0]) for one in sent]

    lister = SimpleNamespace(list_ends=list_ends, topic_ids=lambda _: {})
    monkeypatch.setattr(probe._observer, "_lister", cast("EndOffsetLister", lister))
    monkeypatch.setattr(probe, "_topic", SimpleNamespace(send=send))
    assert await listed() == [("orders-in", "a:1"), ("payments", "a:1")]
    assert await listed() == [], "it is alone"
    state.held.others = {1: Peer("a:2", "")}
    assert await listed() == [("orders-in", "a:1")], "the first is published in each round"
    silent.add(other)
    number = probe._number
    assert await listed() == [("orders-in", "a:1")]
    assert probe._number == number + 1, "others list it again"
    assert await listed() == [("orders-in", "a:1")]
    assert probe._number == number + 1
    silent.clear()
    # Now another lists what has the higher weight there, and is as fresh as it was heard.
    for topic in ("orders-in", "payments"):
        state.listers.note(topic, Lister("a:2", 1), now - 1_000, "a:1")
    left = {topic for topic in ("orders-in", "payments") if probe._lister()(topic)}
    assert {topic for topic, _ in await listed()}.isdisjoint(left)
    assert await probe._round() == (now - 1_000 if left else now)


async def test_a_partition_that_is_gone_is_not_waited_for(probe: EndOffsetsProbe) -> None:
    probe._untaken = TopicPartition("deleted", 0), START_MS
    assert await probe._is_taken({PARTITION})


async def test_topics_that_no_instance_lists_any_more_are_removed(
    probe: EndOffsetsProbe, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, sent = probe._state, []

    async def send(*, key: bytes, value: bytes | None) -> None:
        sent.append((key, value))

    monkeypatch.setattr(probe, "_topic", SimpleNamespace(send=send))
    read(state, commit(0, 5))
    for topic in ("deleted", "of-another", SOURCE):
        for number in range(2):
            state.apply_ends(TopicPartition(topic, number), seen(10, START_MS))
    before = await probe.remove_unlisted({})
    state.apply_ends(TopicPartition("of-another", 1), seen(10, START_MS + 60_000))
    after = await probe.remove_unlisted(before)
    assert sent == [(b"deleted-0", None), (b"deleted-1", None)]
    await probe.remove_unlisted(after)  # brokers are away
    assert len(sent) == 2
