"""A broker that answers anything to who asks for reassignments: a round goes through, or says why.

CAUGHTUP_FUZZ_ANSWERS is how many answers there are, CAUGHTUP_FUZZ_SEED what they are made from.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections import Counter
from random import Random
from typing import Any, cast

import pytest
from aiokafka.errors import KafkaError

from caughtup.agents.clock import now_ms
from caughtup.agents.probes.reassignments import ReassignmentObserver
from caughtup.agents.process.health import Health
from caughtup.agents.reassignments.agent import apply_record
from caughtup.agents.reassignments.probe import ReassignmentsProbe
from caughtup.agents.settings import Settings
from caughtup.agents.topics.publisher import TopicWriter
from caughtup.models.records.reassignments import CLUSTER_KEY
from tests.fuzz.broker_answers import HostileBrokers
from tests.fuzz.twins import Cluster, FaultsError
from tests.fuzz.values import Values

ANSWERS = int(os.environ.get("CAUGHTUP_FUZZ_ANSWERS", "200000"))
_ROUNDS = 60
_ROUND_SECONDS = 20.0


class Topic:
    """Has the service take what its probe publishes, at once."""

    def __init__(self, cluster: Cluster) -> None:
        self.records = 0
        self._cluster = cluster

    async def send(self, *, key: bytes, value: bytes | None) -> asyncio.Future[None]:
        self.records += 1
        refused = self._cluster.state.refused.counts.copy()
        apply_record(self._cluster.state, key, value)
        if (
            key == CLUSTER_KEY
        ):  # all partitions lean on it: what is wrong with one broker is left out
            assert self._cluster.state.refused.counts == refused, self._cluster.state.refused.newest
        acknowledged = asyncio.get_running_loop().create_future()
        acknowledged.set_result(None)
        return acknowledged


async def beset(seed: int, totals: Counter[str]) -> None:
    """Go through some rounds with one hostile cluster."""
    brokers, cluster = HostileBrokers(Values(Random(seed))), Cluster()
    topic = Topic(cluster)
    writer = cast("TopicWriter", topic)
    settings = Settings(bootstrap_servers="nowhere:1")
    probe = ReassignmentsProbe(settings, Health(), cluster.state, writer)
    observer = ReassignmentObserver({"bootstrap_servers": "nowhere:1"}, 0.1)
    cast(Any, observer.protocol).connections = brokers
    for _ in range(_ROUNDS):
        try:
            async with asyncio.timeout(_ROUND_SECONDS):
                await probe._round(observer)
            totals["rounds"] += 1
        except KafkaError:
            totals["rounds without an answer"] += 1
        cluster.turn(now_ms())
        if cluster.faults:
            raise FaultsError("\n".join(cluster.faults))
    totals["answers"] += brokers.answered
    totals["records"] += topic.records
    totals["refused"] += cluster.state.refused.counts.total()
    totals["verdicts"] += sum(cluster.state.reassignments.ended_counts.values())
    await observer._throttles.stop()


async def fuzz(seed: int, enough: int) -> str:
    """Go through so many answers, and say what came of it. What fails names its seed."""
    totals: Counter[str] = Counter()
    while totals["answers"] < enough:
        try:
            await beset(seed, totals)
        except Exception as error:
            error.add_note(f"CAUGHTUP_FUZZ_SEED={seed}")
            raise
        seed += 1
    return ", ".join(f"{count:,} {what}" for what, count in totals.items())


async def test_what_a_hostile_broker_answers_costs_no_more_than_its_round() -> None:
    print(await fuzz(int(os.environ.get("CAUGHTUP_FUZZ_SEED", "1")), 4_000))


@pytest.mark.thorough
@pytest.mark.timeout(3_600)
async def test_many_hostile_answers_cost_no_more_than_their_rounds() -> None:
    seed = int(os.environ.get("CAUGHTUP_FUZZ_SEED", secrets.randbelow(1 << 32)))
    print(f"seed {seed}")
    print(await fuzz(seed, ANSWERS))
