"""Read replication throttles: those of reassigned topics in each round, all others in sweeps.

An orphaned throttle is on a topic or broker without a reassignment. So all topics and brokers are
read too, less often, in a task beside the rounds.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from aiokafka.errors import (
    KafkaError,
    TopicAuthorizationFailedError,
    for_code,
)

from caughtup.agents.kafka.protocol.answers import ResourceConfigs
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.decoding import explain_failure
from caughtup.agents.kafka.recent_names import RecentNames, ask_unless_refused
from caughtup.models.records.keys import is_topic
from caughtup.models.records.reassignments import ThrottleRecord

_Told = TypeVar("_Told")
_OPERATION = "DESCRIBE_CONFIGS"

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
#: Kafka's default, which means no throttle.
_NO_RATE = 2**63 - 1
_RATE_DIGITS = len(str(_NO_RATE))
_UNKNOWN_TOPIC = 3

_BATCH = 500
_SWEEP_SECONDS = 60.0
#: Sweeps take at most one tenth of the time.
_SWEEP_SHARE = 10


@dataclass(frozen=True, slots=True)
class ThrottleRates:
    """A broker's replication throttles in bytes a second; None where there is none."""

    leader: int | None = None
    follower: int | None = None


@dataclass(slots=True)
class Throttles:
    """Throttles by topic, rates by broker, and what could not be read, in words."""

    topics: dict[str, ThrottleRecord] = field(default_factory=dict)
    rates: dict[int, ThrottleRates] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)


class ThrottleObserver:
    """Keeps all throttles, and reads some of them again in each round."""

    def __init__(
        self, protocol: ClusterProtocol, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._protocol = protocol
        self._clock = clock
        self._known = Throttles()
        self._sweep: asyncio.Task[None] | None = None
        self._due = float("-inf")
        #: What brokers refused to tell us: of the cluster in words, and topics.
        self._refused, self._refused_topics = RecentNames(clock), RecentNames(clock)

    async def observe(
        self, topics: Collection[str], brokers: Collection[int], missing: set[str]
    ) -> Throttles:
        """Read the throttles of these topics and brokers, and return all known throttles.

        The first call waits for a sweep of everything; later sweeps run beside the rounds. What
        could not be read is added to ``missing``.
        """
        if self._sweep is None and self._clock() >= self._due:
            is_first = self._due == float("-inf")
            self._due = float("inf")
            self._sweep = asyncio.create_task(self._observe_everything())
            if is_first:
                await asyncio.shield(self._sweep)
                topics, brokers = (), ()
        fresh = Throttles()
        await asyncio.gather(self._topics(sorted(topics), fresh), self._brokers(brokers, fresh))
        for topic in topics:
            self._known.topics.pop(topic, None)
        self._known.topics |= fresh.topics
        self._known.rates |= fresh.rates
        missing |= self._known.missing | fresh.missing
        return Throttles(dict(self._known.topics), dict(self._known.rates))

    async def stop(self) -> None:
        """Cancel a running sweep."""
        if self._sweep is not None:
            self._sweep.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweep

    async def _observe_everything(self) -> None:
        began = self._clock()
        try:
            everything = Throttles()
            brokers = list(self._protocol.connections.brokers)
            topics = await self._ask("the names of topics", self._protocol.topic_names, everything)
            await asyncio.gather(
                self._brokers(brokers, everything), self._topics(topics or (), everything)
            )
            self._known = everything
        finally:
            self._due = self._clock() + max(_SWEEP_SECONDS, _SWEEP_SHARE * (self._clock() - began))
            self._sweep = None

    async def _ask(
        self, what: str, ask: Callable[[], Awaitable[_Told]], into: Throttles
    ) -> _Told | None:
        return await ask_unless_refused(self._refused, what, ask, into.missing, _OPERATION)

    async def _topics(self, topics: Sequence[str], into: Throttles) -> None:
        asked = [topic for topic in topics if topic not in self._refused_topics]
        if len(asked) < len(topics):
            into.missing.add(f"throttles of topics: {_why(TopicAuthorizationFailedError())}")
        for start in range(0, len(asked), _BATCH):
            batch = asked[start : start + _BATCH]
            try:
                found = await self._protocol.topic_configs(
                    batch, (LEADER_REPLICAS, FOLLOWER_REPLICAS)
                )
            except KafkaError as error:
                into.missing.add(f"throttles of topics: {_why(error)}")
                continue
            for topic in found:
                if topic.error_code == TopicAuthorizationFailedError.errno:
                    self._refused_topics.add(topic.name)
            _add_topics(found, into)

    async def _brokers(self, brokers: Iterable[int], into: Throttles) -> None:
        await asyncio.gather(*(self._broker(broker, into) for broker in sorted(brokers)))

    async def _broker(self, broker: int, into: Throttles) -> None:
        configs = await self._ask(
            f"throttles of broker {broker}",
            partial(self._protocol.broker_configs, broker, (LEADER_RATE, FOLLOWER_RATE)),
            into,
        )
        if configs is not None:
            into.rates[broker] = ThrottleRates(
                _rate(configs.get(LEADER_RATE)), _rate(configs.get(FOLLOWER_RATE))
            )


def _add_topics(found: Iterable[ResourceConfigs], into: Throttles) -> None:
    for topic in found:
        if topic.error_code == _UNKNOWN_TOPIC or not is_topic(topic.name):
            continue
        if topic.error_code:
            into.missing.add(f"throttles of topics: {_why(for_code(topic.error_code)())}")
        throttle = ThrottleRecord(
            topic.configs.get(LEADER_REPLICAS, ""), topic.configs.get(FOLLOWER_REPLICAS, "")
        )
        if throttle != ThrottleRecord():
            into.topics[topic.name] = throttle


def _why(error: KafkaError) -> str:
    return explain_failure(error, _OPERATION)


def _rate(value: str | None) -> int | None:
    if value is None or len(value) > _RATE_DIGITS or not value.isdecimal():
        return None
    rate = int(value)
    return None if rate >= _NO_RATE else rate
