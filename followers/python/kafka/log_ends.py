"""List the start and end offsets of an application's changelogs in the background."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import KafkaError

from caughtup.followers.python.kafka.connection import Connection, RepeatedProblem, partition_counts
from caughtup.models.ids import TopicPartition

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
