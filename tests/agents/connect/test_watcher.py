"""Generations decided again by the service, one group's failure kept to it, and what is written."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Mapping

import pytest

from caughtup.agents.connect.watcher import ConnectWatcher, decide_due
from caughtup.agents.process.health import Health
from caughtup.agents.topics.restoration import movements
from caughtup.models.connect_clusters.table import PATIENCE_MS, Undecided
from caughtup.models.connect_clusters.topic_sets import TopicSet
from tests.support.connect.clusters import settled


class Written:
    """A topic that takes what is written."""

    name = "caughtup-movements"
    #: Its records go without transactions.
    fence = None

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes]] = []

    async def send(
        self, *, key: bytes, value: bytes, headers: Mapping[str, bytes] | None
    ) -> Awaitable[None]:
        self.records.append((key, value))
        acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        acknowledged.set_result(None)
        return acknowledged


async def test_what_moves_is_written_once_and_not_again_after_it_was_read_back() -> None:
    cluster = settled()
    topic = Written()
    watcher = ConnectWatcher(cluster.state, Health(ready=True), topic)
    cluster.group.leave("W2")
    cluster.round(decide=False)
    await decide_with(watcher)
    events = [json.loads(value) for _, value in topic.records]
    assert {event["event"] for event in events} == {"planned"}
    assert {event["from"] for event in events} == {"w2:8083"}
    again = settled()
    again.group.now_ms = cluster.group.now_ms
    for key, value in topic.records:
        movements.apply_record(again.state, key, value)
    again.group.leave("W2")
    other = Written()
    again.group.now_ms -= 10
    again.round(decide=False)
    await decide_with(ConnectWatcher(again.state, Health(ready=True), other))
    assert other.records == []


async def test_an_instance_that_stands_by_writes_nothing() -> None:
    cluster, topic = settled(), Written()
    cluster.group.leave("W2")
    cluster.round(decide=False)
    health = Health(ready=True, standby="another is active")
    await decide_with(ConnectWatcher(cluster.state, health, topic))
    assert topic.records == []
    assert cluster.lines("group")[0]["generation"] == 2


def test_a_group_that_cannot_be_decided_costs_itself_alone(monkeypatch: pytest.MonkeyPatch):
    cluster = settled()
    other = settled(
        state=cluster.state, name="another", topics=TopicSet("other-configs", "other-status")
    )
    decide = Undecided.decide

    def breaks(undecided: Undecided):
        if undecided.generation.group == cluster.name:
            raise RecursionError
        return decide(undecided)

    monkeypatch.setattr(Undecided, "decide", breaks)
    cluster.round(decide=False)
    other.round(decide=False)
    decide_due(cluster.state, cluster.group.now_ms + PATIENCE_MS)
    (fault,) = cluster.state.faults.newest()
    assert (fault.part, fault.subject) == ("connect generations", cluster.name)
    assert cluster.lines("group") == []
    assert other.lines("group")[0]["generation"] == 2
    monkeypatch.undo()
    cluster.round()
    assert cluster.lines("group")[0]["generation"] == 3


async def decide_with(watcher: ConnectWatcher) -> None:
    for group, undecided in list(watcher._state.connect.due(2**62)):
        await watcher._decide_one(group, undecided)
    await watcher._outbox.flush()
