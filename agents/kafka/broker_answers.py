"""When the brokers last answered a consumer, from librdkafka's own statistics.

A consumer isn't told when a broker falls silent: its polls just bring nothing. But a broker that
is asked for records answers at least every ``fetch.wait.max.ms``, with or without any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from caughtup.agents.clock import now_ms

_INTERVAL_MS = 500
_CONNECTED, _FETCHING = "UP", "active"
#: librdkafka counts what it doesn't know a partition of, under this number.
_NO_PARTITION = -1


class _Broker(msgspec.Struct):
    nodeid: int
    state: str
    rxidle: int


class _Partition(msgspec.Struct):
    broker: int
    fetch_state: str


class _Topic(msgspec.Struct):
    partitions: dict[int, _Partition]


class _Statistics(msgspec.Struct):
    brokers: dict[str, _Broker]
    topics: dict[str, _Topic]


_decode = msgspec.json.Decoder(_Statistics, strict=False).decode


class BrokerAnswers:
    """Remembers, for each partition of a topic, when the broker that it is read from answered."""

    def __init__(self, topic: str, clock: Callable[[], int] = now_ms) -> None:
        self._topic = topic
        self._clock = clock
        self._partitions: dict[int, int | None] = {}

    @property
    def config(self) -> dict[str, Any]:
        """The properties that make a consumer tell: it does so while it is polled."""
        return {"stats_cb": self.take, "statistics.interval.ms": _INTERVAL_MS}

    @property
    def at_ms(self) -> int | None:
        """The last moment (ms) by which all partitions had an answer; None while one has none."""
        times = list(self._partitions.values())
        return None if None in times else min(filter(None, times), default=None)

    def take(self, statistics: str) -> None:
        """Read what librdkafka passes to ``stats_cb``, in JSON."""
        found = _decode(statistics)
        now = self._clock()
        brokers = {
            broker.nodeid: now - broker.rxidle // 1000
            for broker in found.brokers.values()
            if broker.state == _CONNECTED and broker.rxidle >= 0
        }
        topic = found.topics.get(self._topic)
        for number, partition in topic.partitions.items() if topic else ():
            if number == _NO_PARTITION:
                continue
            known = self._partitions.setdefault(number, None)
            at_ms = brokers.get(partition.broker) if partition.fetch_state == _FETCHING else None
            if at_ms is not None and at_ms > (known or 0):
                self._partitions[number] = at_ms
