"""The numbers of partitions, the cluster's id, and the start and end offsets of changelogs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from caughtup.models.ids import TopicPartition

log = logging.getLogger("caughtup.followers")

#: aiokafka's connection properties: ``bootstrap_servers``, ``security_protocol``, …
Connection = Mapping[str, object]


async def partition_counts(connection: Connection, topics: Collection[str]) -> dict[str, int]:
    """Return the topics' numbers of partitions; topics that do not exist are left out.

    All topics are listed: asking for a missing one would create it on brokers that create topics on
    demand. Raises KafkaError.
    """
    admin = AIOKafkaAdminClient(**connection, client_id="caughtup-follower")
    await admin.start()
    try:
        described = await admin.describe_topics()
    finally:
        await admin.close()
    return {
        one["topic"]: len(one["partitions"])
        for one in described
        if one["topic"] in topics and not one["error_code"]
    }


async def cluster_id(connection: Connection) -> str:
    """Return the cluster's id. Raises KafkaError."""
    admin = AIOKafkaAdminClient(**connection, client_id="caughtup-follower")
    await admin.start()
    try:
        described = await admin.describe_cluster()
    finally:
        await admin.close()
    return str(described["cluster_id"])


class RepeatedProblem:
    """Logs a repeated problem once, until it changes or ends."""

    def __init__(self) -> None:
        self._last: str | None = None

    def say(self, message: str) -> None:
        """Log a warning, unless it is the same as the last one."""
        if message != self._last:
            log.warning("%s", message)
            self._last = message

    def over(self) -> None:
        """Record that the problem has ended."""
        self._last = None


#: How often the changelogs' partitions are counted again.
_PARTITIONS_SECONDS = 60.0
_RETRY_SECONDS = 1.0


class LogEnds:
    """The start and end offsets of changelog partitions, as of the last listing.

    They are listed each ``interval_ms``, and soon after ``ask``.
    """

    def __init__(self, connection: Connection, topics: Collection[str], interval_ms: int) -> None:
        self._connection = connection
        self._topics = topics
        self._seconds = interval_ms / 1000
        self._asked = asyncio.Event()
        self._complaint = RepeatedProblem()
        self.starts: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, int] = {}
        #: Set after the first listing, also a failed one.
        self.known = asyncio.Event()

    def ask(self) -> None:
        """Request another listing soon; does not wait."""
        self._asked.set()

    async def run(self) -> None:
        """List offsets until cancelled."""
        if not self._topics:
            self.known.set()
            return
        while True:
            try:
                await self._list()
            except (KafkaError, OSError) as error:
                self._complaint.say(f"cannot list the ends of changelogs: {error!r}")
            self.known.set()
            await asyncio.sleep(_RETRY_SECONDS)

    async def _list(self) -> None:
        """List offsets repeatedly, until a failure or the next count of partitions."""
        counts = await partition_counts(self._connection, self._topics)
        partitions = [
            KafkaPartition(topic, number)
            for topic, count in sorted(counts.items())
            for number in range(count)
        ]
        missing = sorted(set(self._topics) - counts.keys())
        if missing:
            self._complaint.say(f"there is no changelog topic {missing[0]}")
        consumer = AIOKafkaConsumer(**self._connection, client_id="caughtup-follower")
        await consumer.start()
        loop = asyncio.get_running_loop()
        until = loop.time() + (_RETRY_SECONDS if missing else _PARTITIONS_SECONDS)
        try:
            while loop.time() < until:
                self._asked.clear()
                ends = await consumer.end_offsets(partitions) if partitions else {}
                starts = await consumer.beginning_offsets(partitions) if partitions else {}
                self.ends = {TopicPartition(*one): offset for one, offset in ends.items()}
                self.starts = {TopicPartition(*one): offset for one, offset in starts.items()}
                self.known.set()
                if not missing:
                    self._complaint.over()
                try:
                    await asyncio.wait_for(self._asked.wait(), self._seconds)
                except TimeoutError:
                    continue
        finally:
            await consumer.stop()
