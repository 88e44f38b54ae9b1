"""``__consumer_offsets`` → batches of changes → the cluster's state.

The firehose doesn't pass an agent record by record: whole polls are decoded at once, and the
agent gets what changed.
"""

from __future__ import annotations

import gc
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
from caughtup.models.reading import ReadingProgress
from caughtup.models.state import ClusterState
from caughtup.models.wire.batch import Batch, decode_batch

log = logging.getLogger(__name__)

#: How the key of a group's metadata starts: key type 2.
_GROUP_KEY = b"\x00\x02"
#: How the topic is read, here and by the benchmark.
CONSUMER: dict[str, Any] = {
    "isolation_level": "read_committed",
    "enable_auto_commit": False,
    "auto_offset_reset": "earliest",
    "fetch_max_wait_ms": 200,
    "max_partition_fetch_bytes": 4 << 20,
}
#: Of a poll: decoding so many holds up the event loop for less than a tenth of a second.
MAX_RECORDS = 20_000
_RETRY_SECONDS = 1.0
#: Unreadable records that the log tells of; the metrics count them all.
_SAMPLES_A_MINUTE = 10
#: How often the log tells of a long start.
_SAY_MS = 5_000

Records = list[tuple[bytes | None, bytes | None]]


class Restraint:
    """Lets so many things through each minute."""

    def __init__(self, a_minute: int) -> None:
        self._a_minute = a_minute
        self._minute = -1
        self._count = 0

    def is_too_much(self, now: int) -> bool:
        """Tell whether one more at this moment (ms) is too much."""
        minute = now // 60_000
        if minute != self._minute:
            self._minute, self._count = minute, 0
        self._count += 1
        return self._count > self._a_minute


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
    unreadable = Restraint(_SAMPLES_A_MINUTE)

    @app.agent(changes, name="offsets")
    async def apply(batches: faust.StreamT[Batch | CaughtUp]) -> None:
        async for batch in batches:
            if isinstance(batch, CaughtUp):
                state.applications.leave_the_past()
                # What a long log left is here to stay: no garbage collection has to look through it.
                gc.freeze()
                health.ready = True
                await wakeups.put(Wakeup.GROUPS)
                log.info("caught up with %s", CONSUMER_OFFSETS)
                continue
            state.apply_batch(batch, now_ms())
            for sample in batch.samples:
                if not unreadable.is_too_much(now_ms()):
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
            consumer = AIOKafkaConsumer(**aiokafka_config(self._settings), **CONSUMER)
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
        starts = await consumer.beginning_offsets(partitions)
        total = sum(end - starts[p] for p, end in self._ends_at_start.items())
        log.info(
            "reading %d partitions of %s, %d offsets", len(partitions), CONSUMER_OFFSETS, total
        )
        progress = ReadingProgress(total, now_ms())
        say_ms = progress.started_ms + _SAY_MS
        while not self.should_stop:
            polled = await consumer.getmany(timeout_ms=500, max_records=MAX_RECORDS)
            records = [(r.key, r.value) for found in polled.values() for r in found]
            for chunk in split_generations(records) if self._health.ready else (records,):
                if chunk:
                    await self._changes.put(decode_batch(chunk))
            await self._measure(consumer)
            if self._announced:
                continue
            progress.records += len(records)
            progress.behind = self._health.reader_lag or 0
            if not progress.behind:
                await self._announce()
                log.info("read %s: %s", CONSUMER_OFFSETS, progress.speed(now_ms()))
            elif now_ms() >= say_ms:
                say_ms += _SAY_MS
                log.info("reading %s: %s", CONSUMER_OFFSETS, progress.line(now_ms()))

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
        """Tell how much is left; at first, of what was there at the start."""
        behind = 0
        for partition, end in self._ends_at_start.items():
            position = await consumer.position(partition)
            if self._health.ready:
                end = consumer.last_stable_offset(partition) or end
            behind += max(0, end - position)
        answered = [consumer.last_poll_timestamp(partition) for partition in self._ends_at_start]
        self._health.polled(None if None in answered else min(answered), behind)

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
