"""Write a follower's records to caughtup's topics in the background."""

from __future__ import annotations

import asyncio
import time

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from caughtup.followers.python.kafka.log_ends import Connection, RepeatedProblem, partition_counts

_MOST_BYTES = 64 << 20
_RETRY_SECONDS = 10.0
_WRITE_SECONDS = 10.0


class RecordPublisher:
    """Writes records; only the newest value of each key waits to be written.

    A missing topic is never created, and checked again later. Records that cannot be written are
    dropped with a warning.
    """

    def __init__(self, connection: Connection, topics: tuple[str, ...]) -> None:
        self._connection = connection
        self._topics = topics
        self._existing: frozenset[str] = frozenset()
        self._list_again_at = 0.0
        self._waiting: dict[tuple[str, bytes], bytes | None] = {}
        self._woken = asyncio.Event()
        self._complaint = RepeatedProblem()
        self._producer: AIOKafkaProducer | None = None

    def publish(self, topic: str, key: bytes, value: bytes | None) -> None:
        """Queue a record; None is a tombstone."""
        self._waiting[topic, key] = value
        self._woken.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write the queued records, or drop them."""
        waiting, self._waiting = self._waiting, {}
        try:
            async with asyncio.timeout(_WRITE_SECONDS):
                await self._write(waiting)
        except (KafkaError, OSError, TimeoutError) as error:
            self._complaint.say(f"cannot write to {', '.join(self._topics)}: {error!r}")

    async def close(self) -> None:
        """Write the queued records, then close the connection."""
        try:
            if self._waiting:
                await self.flush()
        finally:
            if self._producer is not None:
                await self._producer.stop()

    async def _write(self, waiting: dict[tuple[str, bytes], bytes | None]) -> None:
        if self._existing != set(self._topics) and time.monotonic() >= self._list_again_at:
            self._list_again_at = time.monotonic() + _RETRY_SECONDS
            self._existing = frozenset(await partition_counts(self._connection, self._topics))
        if self._producer is None:
            producer = AIOKafkaProducer(
                **self._connection,
                client_id="caughtup-follower",
                acks="all",
                # Idempotence could need more permissions than WRITE.
                enable_idempotence=False,
                compression_type="gzip",
                max_request_size=_MOST_BYTES,
            )
            await producer.start()
            self._producer = producer
        sent = [
            await self._producer.send(topic, value, key)
            for (topic, key), value in waiting.items()
            if topic in self._existing
        ]
        results = await asyncio.gather(*sent, return_exceptions=True)
        failed = [one for one in results if isinstance(one, BaseException)]
        missing = sorted({topic for topic, _ in waiting} - self._existing)
        if failed:
            self._complaint.say(f"cannot write to {', '.join(self._topics)}: {failed[0]!r}")
        elif missing:
            self._complaint.say(f"there is no topic {missing[0]}")
        else:
            self._complaint.over()
