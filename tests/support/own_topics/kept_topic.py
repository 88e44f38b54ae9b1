"""A fake of the service's own topics without Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from confluent_kafka import KafkaError, KafkaException


class KeptTopic:
    """Keeps records, and acknowledges each in a later turn of the event loop.

    The first ``failures`` records are not acknowledged in time, and not kept.
    """

    #: Its records go without transactions.
    fence = None

    def __init__(self, name: str = "a topic", failures: int = 0) -> None:
        self.name = name
        self.sent: list[tuple[bytes, bytes | None]] = []
        self._failures = failures
        self._came = asyncio.Event()

    async def send(
        self, *, key: bytes, value: bytes | None, headers: Mapping[str, bytes] | None = None
    ) -> asyncio.Future[None]:
        """Take a record, as ``TopicWriter.send`` does."""
        loop = asyncio.get_running_loop()
        acknowledged: asyncio.Future[None] = loop.create_future()
        if self._failures:
            self._failures -= 1
            late = KafkaException(KafkaError(KafkaError._MSG_TIMED_OUT))
            loop.call_soon(acknowledged.set_exception, late)
        else:
            self.sent.append((key, value))
            self._came.set()
            loop.call_soon(acknowledged.set_result, None)
        return acknowledged

    async def first(self, count: int) -> list[tuple[bytes, Any]]:
        """Wait for ``count`` records, and return them with their values decoded from JSON."""
        while len(self.sent) < count:
            self._came.clear()
            await self._came.wait()
        return self.decoded()[:count]

    def decoded(self) -> list[tuple[bytes, Any]]:
        """Return the kept records, with their values decoded from JSON."""
        return [
            (key, None if value is None else msgspec.json.decode(value)) for key, value in self.sent
        ]
