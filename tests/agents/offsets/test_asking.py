"""The service's part that asks about groups, without a broker that answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import faust
import pytest
from aiokafka.errors import KafkaConnectionError

from caughtup.agents.kafka.asking.asker import GroupAsker
from caughtup.agents.kept_channel import kept_channel
from caughtup.agents.offsets import asking
from caughtup.agents.offsets.asking import GroupsReader
from caughtup.agents.process.health import OFFSETS, Health
from caughtup.agents.settings import Settings
from caughtup.demo.processes.children import free_ports
from caughtup.models.state.cluster import ClusterState


def made(health: Health, **settings: object) -> GroupsReader:
    """Make a reader of a cluster that isn't there."""
    given = Settings(
        bootstrap_servers=f"127.0.0.1:{free_ports(1)[0]}",
        source="ask",
        **settings,  # type: ignore[arg-type]
    )
    channel = kept_channel(faust.App("test", store="memory://", web_enabled=False))
    return GroupsReader(given, health, channel, ClusterState("c", {}), lambda: None)


async def until(what: str, ask: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until something is true."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not ask():
        assert asyncio.get_running_loop().time() < deadline, what
        await asyncio.sleep(0.01)


async def test_without_a_broker_it_goes_on_and_says_why_it_is_not_ready(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(asking, "_FIRST_SECONDS", 0.0)
    monkeypatch.setattr(asking, "_PAUSE_SECONDS", 0.0)
    health = Health()
    with caplog.at_level(logging.WARNING, asking.__name__):
        async with made(health) as reader:
            await until("it fails", lambda: health.probe_errors["offsets"] > 30)
            assert not reader.crashed
    (why,) = [one for one in health.unready() if one.startswith("groups: ")]
    assert "\n" not in why
    assert "refused" in why
    assert not health.ready
    lines = [one for one in caplog.records if one.name == asking.__name__]
    assert len(lines) == 1, "a failure that goes on is logged once in ten minutes"


async def test_an_interval_of_an_hour_is_no_standstill(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> bool:
        return True

    monkeypatch.setattr(GroupAsker, "round", nothing)
    health = Health()
    async with made(health, ask_interval=3_600):
        await until("it has asked", lambda: health.polled_ms is not None)
        await asyncio.sleep(0)
        for _ in range(2):
            health.pulses.tick()
        assert OFFSETS not in health.pulses.still_seconds()


async def test_a_broker_that_lists_no_groups_is_waited_for_a_few_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asking, "_FIRST_SECONDS", 0.0)
    monkeypatch.setattr(asking, "_PAUSE_SECONDS", 0.0)
    rounds: list[bool] = []

    async def round_(self: GroupAsker, *_: object) -> bool:
        self.unlisted = "broker 1: listing its groups: refused"
        self.has_listed = len(rounds) >= 5  # before that, no broker does
        rounds.append(self.has_listed)
        if not self.has_listed:
            raise KafkaConnectionError("none")
        return False

    monkeypatch.setattr(GroupAsker, "round", round_)
    health = Health()
    async with made(health):
        await until("it begins", lambda: health.polled_ms is not None)
    assert rounds[:8] == [False] * 5 + [True] * 3
    assert health.hindrances == {}
