"""Throttles where nothing is reassigned: observed at the start, and again once in a while."""

from __future__ import annotations

import asyncio
import time

import pytest

from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.probes.throttles import ThrottleObserver, ThrottleRates, Throttles
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.throttle import clear_throttle, set_throttle
from caughtup.models.records.reassignments import ThrottleRecord
from tests.integration.conftest import MakeCluster, MakeTopic
from tests.support.service import SECONDS

pytestmark = pytest.mark.thorough

ALL = ThrottleRecord("*", "*")


async def until(
    observer: ThrottleObserver, topic: str, throttle: ThrottleRecord | None
) -> Throttles:
    """Observe, as when nothing is reassigned, until a topic is seen with this throttle."""
    deadline = time.monotonic() + SECONDS
    while (found := await observer.observe((), (), set())).topics.get(topic) != throttle:
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.05)
    return found


async def test_everything_is_observed_now_and_then_and_what_moves_each_time(
    cluster: EmbeddedCluster, make_topic: MakeTopic
) -> None:
    topic, now, missing = make_topic(), 0.0, set[str]()
    async with ClusterProtocol({"bootstrap_servers": cluster.bootstrap_servers}) as protocol:
        observer = ThrottleObserver(protocol, clock=lambda: now)
        try:
            found = await observer.observe((), (), missing)
            assert found.rates == {1: ThrottleRates(), 2: ThrottleRates()}
            assert topic not in found.topics
            set_throttle(cluster, topic, 5_000)
            assert topic not in (await observer.observe((), (), missing)).topics
            found = await observer.observe([topic], [2], missing)
            assert found.topics[topic] == ALL
            assert found.rates == {1: ThrottleRates(), 2: ThrottleRates(5_000, 5_000)}
            now = 61.0
            found = await until(observer, topic, ALL)
            deadline = time.monotonic() + SECONDS
            while (await observer.observe((), (), missing)).rates[1] != ThrottleRates(5_000, 5_000):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
            clear_throttle(cluster, topic)
            assert (await observer.observe((), (), missing)).topics[topic] == ALL
            assert topic not in (await observer.observe([topic], [], missing)).topics
            now = 122.0
            assert (await until(observer, topic, None)).topics == {}
        finally:
            clear_throttle(cluster, topic)
            await observer.stop()
    assert missing == set()


async def test_a_broker_that_is_gone_keeps_nothing_from_being_told(
    make_cluster: MakeCluster,
) -> None:
    cluster = make_cluster(nodes=2)
    async with ClusterProtocol({"bootstrap_servers": cluster.bootstrap_servers}) as protocol:
        cluster.kill_node(2)
        observer, missing = ThrottleObserver(protocol), set[str]()
        found = await observer.observe((), (), missing)
        await observer.stop()
    assert found.rates == {1: ThrottleRates()}
    assert missing == {"throttles of broker 2: Connection refused"}
