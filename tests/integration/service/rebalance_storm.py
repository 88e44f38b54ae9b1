"""The table of docs/measured.md: ``python -m tests.integration.service.rebalance_storm``.

Applications of two played members each rebalance all the time, as often as ``--every`` says, on two
real brokers. The service lists end offsets while they do, then, in the same storm, it does not:
what that costs the brokers and the service is the difference.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple

from aiokafka.errors import KafkaError

from caughtup.bench.offsets.readers import process_figures
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from tests.support.kafka.streams_members import PlayedApplication, topics_of
from tests.support.service import Service

_AT_ONCE = 25
_SETTLE_SECONDS = 15.0
_TOPICS_AT_ONCE = 50


class Figures(NamedTuple):
    """What was spent in a while, in requests and CPU seconds a second."""

    rebalances: float
    requests: float
    service: float
    brokers: float

    def __str__(self) -> str:
        return (
            f"{self.rebalances:9.1f} {self.requests:9.1f} {self.service:13.3f} {self.brokers:13.3f}"
        )


class Storm:
    """Applications that rebalance in turn, each some time after its last rebalance."""

    def __init__(self, applications: Sequence[PlayedApplication], every: float, seed: int) -> None:
        self._applications, self._every, self._drawn = applications, every, random.Random(seed)
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self.rebalances, self.failures = 0, Counter[str]()

    async def start(self) -> None:
        """Rebalance each once."""
        await asyncio.gather(*map(self._rebalance, self._applications))

    async def rage(self, seconds: float) -> None:
        """Rebalance all again and again."""
        until = time.monotonic() + seconds
        await asyncio.gather(*(self._again(one, until) for one in self._applications))

    async def _again(self, application: PlayedApplication, until: float) -> None:
        await asyncio.sleep(self._drawn.uniform(0, self._every))
        while time.monotonic() < until:
            began = time.monotonic()
            await self._rebalance(application)
            await asyncio.sleep(max(0.0, began + self._every - time.monotonic()))

    async def _rebalance(self, application: PlayedApplication) -> None:
        async with self._at_once:
            try:
                await application.rebalance((), decides_in=0.05)
                self.rebalances += 1
            except KafkaError as error:  # of a busy machine
                self.failures[repr(error)] += 1


async def _spent(
    cluster: EmbeddedCluster, service: Service, storm: Storm, seconds: float, *, raging: bool
) -> Figures:
    def totals() -> tuple[float, float, float, float]:
        brokers = sum(process_figures(pid)["cpu_seconds"] for pid in cluster.pids)
        requests = service.value("rebalance_requests_total") or 0
        ours = process_figures(service.process.pid)["cpu_seconds"]
        return storm.rebalances, requests, ours, brokers

    before, began = await asyncio.to_thread(totals), time.monotonic()
    await (storm.rage(seconds) if raging else asyncio.sleep(seconds))
    after, lasted = await asyncio.to_thread(totals), time.monotonic() - began
    return Figures(*((late - early) / lasted for early, late in zip(before, after, strict=True)))


async def _measure(
    cluster: EmbeddedCluster, groups: int, seconds: float, every: float, seed: int
) -> None:
    names = [f"storm-{number:04d}" for number in range(groups)]
    topics = [topic for name in names for topic in topics_of(name)]
    for at in range(0, len(topics), _TOPICS_AT_ONCE):
        create_topics(cluster, dict.fromkeys(topics[at : at + _TOPICS_AT_ONCE], 2))
    async with AsyncExitStack() as stack:
        played = []
        for name in names:
            played.append(PlayedApplication(cluster.bootstrap_servers, name))
            await stack.enter_async_context(played[-1])
        storm = Storm(played, every, seed)
        await storm.start()
        print(f"{groups} groups, a rebalance each {every:g} s or as soon as may be; seed {seed}")
        print("listing  storm  rebalances/s requests/s service cores brokers cores", flush=True)
        for listing in (True, False):
            more = {} if listing else {"rebalance_interval": 0}
            with Service(cluster, **more) as service:
                await asyncio.sleep(_SETTLE_SECONDS)
                for raging in (False, True):
                    found = await _spent(cluster, service, storm, seconds, raging=raging)
                    print(f"{listing!s:8} {raging!s:6} {found}", flush=True)
        for failure, count in sorted(storm.failures.items()):
            print(f"{count} failed: {failure}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=30, help="of rest, and of each storm")
    parser.add_argument("--every", type=float, default=10, help="seconds between two of a group")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # four connections a group
    with EmbeddedCluster(nodes=2) as cluster:
        with Service(cluster):
            pass  # what forks services starts before there are more files than select takes
        asyncio.run(_measure(cluster, given.groups, given.seconds, given.every, given.seed))


if __name__ == "__main__":
    main()
