"""``__consumer_offsets`` → batches of changes → the cluster's state.

The firehose doesn't pass an agent record by record: whole polls are decoded at once, and the
agent gets what changed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import faust
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.health import Health
from caughtup.agents.kafka_config import aiokafka_config
from caughtup.agents.protocol import refresh_metadata
from caughtup.agents.recommend import Wakeup
from caughtup.agents.settings import Settings
from caughtup.agents.topics import CONSUMER_OFFSETS
from caughtup.models.state import ClusterState
from caughtup.models.wire.batch import Batch, decode_batch

log = logging.getLogger(__name__)

#: How the key of a group's metadata starts: key type 2.
_GROUP_KEY = b"\x00\x02"
_MAX_RECORDS = 20_000
_RETRY_SECONDS = 1.0

Records = list[tuple[bytes | None, bytes | None]]


class CaughtUp:
    """Goes down the channel behind the last batch that was there at the start."""


def offsets(
    app: faust.App,
    changes: faust.ChannelT,
    state: ClusterState,
    health: Health,
    wakeups: faust.ChannelT,
) -> None:
    """Register the offsets agent: a batch of changes in, the state updated."""

    @app.agent(changes, name="offsets")
    async def apply(batches: faust.StreamT[Batch | CaughtUp]) -> None:
        async for batch in batches:
            if isinstance(batch, CaughtUp):
                state.leave_the_past()
                health.ready = True
                await wakeups.put(Wakeup.GROUPS)
                log.info("caught up with %s", CONSUMER_OFFSETS)
                continue
            state.apply_batch(batch, now_ms())
            for sample in batch.samples:
                log.warning("skipped a record of %s: %s", CONSUMER_OFFSETS, sample)
            if batch.groups:
                await wakeups.put(Wakeup.GROUPS)


class OffsetsReader(Service):
    """Reads all of ``__consumer_offsets``, read_committed, and puts what changed on a channel."""

    logger = logging.getLogger("mode.caughtup")  # its own comings and goings

    def __init__(self, settings: Settings, health: Health, changes: faust.ChannelT) -> None:
        super().__init__()
        self._settings = settings
        self._health = health
        self._changes = changes
        self._ends_at_start: dict[TopicPartition, int] = {}
        self._announced = False

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            consumer = AIOKafkaConsumer(
                **aiokafka_config(self._settings),
                isolation_level="read_committed",
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                fetch_max_wait_ms=200,
                max_partition_fetch_bytes=4 << 20,
            )
            try:
                await consumer.start()
                await self._read(consumer)
            except (KafkaError, OSError) as error:
                log.warning("reading %s: %r; trying again", CONSUMER_OFFSETS, error)
                self._health.failed("offsets")
                await self.sleep(_RETRY_SECONDS)
            finally:
                await consumer.stop()

    async def _read(self, consumer: AIOKafkaConsumer) -> None:
        partitions = await self._partitions(consumer)
        if not partitions:  # told to stop before there were any
            return
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        # Under read_committed this is the last stable offset: nothing beyond it can be read yet.
        self._ends_at_start = dict(await consumer.end_offsets(partitions))
        log.info("reading %d partitions of %s", len(partitions), CONSUMER_OFFSETS)
        while not self.should_stop:
            polled = await consumer.getmany(timeout_ms=500, max_records=_MAX_RECORDS)
            records = [(r.key, r.value) for found in polled.values() for r in found]
            for chunk in split_generations(records) if self._health.ready else (records,):
                if chunk:
                    await self._changes.put(decode_batch(chunk))
            await self._measure(consumer)

    async def _partitions(self, consumer: AIOKafkaConsumer) -> list[TopicPartition]:
        """Wait until the topic is there: brokers make it when the first group needs it."""
        while not self.should_stop:
            await refresh_metadata(consumer)
            if found := consumer.partitions_for_topic(CONSUMER_OFFSETS):
                return [TopicPartition(CONSUMER_OFFSETS, p) for p in sorted(found)]
            await self._announce()
            await self.sleep(_RETRY_SECONDS)
        return []

    async def _measure(self, consumer: AIOKafkaConsumer) -> None:
        """Tell how much is left, and become ready once the ends seen at the start are passed."""
        behind = 0
        for partition, end in self._ends_at_start.items():
            position = await consumer.position(partition)
            if self._health.ready:
                end = consumer.last_stable_offset(partition) or end
            behind += max(0, end - position)
        self._health.reader_lag = behind
        if not behind:
            await self._announce()

    async def _announce(self) -> None:
        if not self._announced:
            self._announced = True
            await self._changes.put(CaughtUp())


def split_generations(records: Sequence[tuple[bytes | None, Any]]) -> Iterator[Records]:
    """Cut a poll where a group's metadata comes again, so that no generation is skipped.

    A batch keeps the last value of each key, which is right for everything but generations.
    """
    chunk: Records = []
    seen: set[bytes] = set()
    for record in records:
        key = record[0]
        if key is not None and key.startswith(_GROUP_KEY):
            if key in seen:
                yield chunk
                chunk, seen = [], set()
            seen.add(key)
        chunk.append(record)
    if chunk:
        yield chunk
