"""Log-end offsets: a probe puts them on caughtup-end-offsets, an agent takes them from there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import faust
import msgspec
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.election import until_active
from caughtup.agents.end_offset_listing import list_end_offsets, topic_ids
from caughtup.agents.health import Health
from caughtup.agents.kafka_config import rdkafka_config
from caughtup.agents.own_records import Slice
from caughtup.agents.publisher import OwnTopicWriter
from caughtup.agents.readable_ends import ReadableEnds
from caughtup.agents.recommend import Wakeup
from caughtup.agents.settings import Settings
from caughtup.models.ids import TopicPartition
from caughtup.models.lag import EndOffsets
from caughtup.models.state import ClusterState

log = logging.getLogger(__name__)

SCHEMA = 1
PROBE = "end_offsets"
#: An unchanged partition is written again this often, so that readers know it is still looked at.
_REFRESH_MS = 60_000
#: What was published and isn't in the tables by then is published again: a recreated topic loses
#: records, and its reader may go on behind the first new ones.
_TAKEN_MS = 5_000


class EndOffsetsRecord(msgspec.Struct):
    """The value on caughtup-end-offsets: offsets, and when they were asked for (ms)."""

    schema: int
    topic: str
    partition: int
    start_offset: int
    last_stable_offset: int
    end_offset: int
    as_of_ms: int
    readable_end_offset: int | None = None
    #: 32 hexadecimal digits, where somebody has to know.
    topic_id: str | None = None


_decode = msgspec.json.Decoder(EndOffsetsRecord).decode


def end_offsets(
    app: faust.App, channel: faust.ChannelT, state: ClusterState, wakeups: faust.ChannelT
) -> None:
    """Register the end-offsets agent: records in batches, the state updated."""

    @app.agent(channel, name="end_offsets")
    async def apply(slices: faust.StreamT[Slice]) -> None:
        async for records in slices:
            for record in records:
                apply_record(state, record.key, record.value)
            await wakeups.put(Wakeup.END_OFFSETS)


def apply_record(state: ClusterState, key: bytes | None, value: bytes | None) -> None:
    """Take one record of caughtup-end-offsets; a malformed one is logged and skipped."""
    try:
        if value is None:
            topic, _, partition = (key or b"").decode().rpartition("-")
            state.apply_ends(TopicPartition(topic, int(partition)), None)
            return
        record = _decode(value)
        topic_id = bytes.fromhex(record.topic_id) if record.topic_id else None
    except (msgspec.MsgspecError, ValueError) as error:
        log.warning("skipped a record of end offsets, key %r: %s", key, error)
        return
    state.apply_ends(
        TopicPartition(record.topic, record.partition),
        EndOffsets(
            record.start_offset,
            record.last_stable_offset,
            record.end_offset,
            record.as_of_ms,
            record.readable_end_offset,
        ),
        topic_id,
    )


class EndOffsetsProbe(Service):
    """Asks the leaders for the end offsets that matter, and publishes those that changed.

    It looks every ``end_offsets_interval`` seconds, and at once when ``hurry`` is set because a
    generation waits for end offsets listed after it.
    """

    logger = logging.getLogger("mode.caughtup")  # its own comings and goings

    def __init__(
        self,
        settings: Settings,
        health: Health,
        state: ClusterState,
        topic: OwnTopicWriter,
        hurry: asyncio.Event,
    ) -> None:
        super().__init__()
        self._interval = settings.end_offsets_interval
        self._prefix = settings.topic_prefix
        self._admin = AdminClient(rdkafka_config(settings))
        self._health = health
        self._state = state
        self._readable = ReadableEnds(settings, state)
        self._topic = topic
        self._hurry = hurry
        self._published: dict[TopicPartition, EndOffsets] = {}
        self._topic_ids: dict[str, bytes] = {}

    def write_again(self) -> None:
        """Write what was written before: its topic was made anew."""
        self._published.clear()
        self._hurry.set()

    @Service.task
    async def _run(self) -> None:
        await until_active(self, self._health)
        while not self.should_stop:
            try:
                await self._round()
                self._health.succeeded(PROBE, now_ms())
            except KafkaException as error:
                if self._health.failed(PROBE):
                    log.warning("listing end offsets: %s", error.args[0].str())
            self._hurry.clear()
            try:
                await asyncio.wait_for(self._hurry.wait(), self._interval)
            except TimeoutError:
                continue

    async def _round(self) -> None:
        wants = self._wants()
        listed, present = await asyncio.to_thread(list_end_offsets, self._admin, wants)
        suspects = self._readable.suspects(listed)
        await asyncio.to_thread(self._readable.read, suspects, listed)
        found = self._readable.complete(listed)
        named = await asyncio.to_thread(topic_ids, self._admin, self._state.unnamed_topics())
        self._topic_ids |= named
        awaited = self._state.applications.awaited()
        for partition, ends in sorted(found.items()):
            awaits = any(partition.topic.startswith(f"{group}-") for group in awaited)
            if awaits or partition.topic in named or self._is_news(partition, ends):
                self._published[partition] = ends
                await self._send(partition, ends)
        known_partitions = self._published.keys() | {partition for partition, _ in self._state.ends}
        for partition in sorted(known_partitions - present):
            self._published.pop(partition, None)
            self._topic_ids.pop(partition.topic, None)
            await self._send(partition, None)

    def _is_news(self, partition: TopicPartition, ends: EndOffsets) -> bool:
        """Tell whether readers would learn anything, be it that we are still looking."""
        known = self._published.get(partition)
        if known is None or _offsets(known) != _offsets(ends):
            return True
        taken = self._state.ends.latest(partition)
        is_taken = taken is not None and taken.as_of_ms >= known.as_of_ms
        return ends.as_of_ms - known.as_of_ms >= (_REFRESH_MS if is_taken else _TAKEN_MS)

    def _wants(self) -> Callable[[str], bool]:
        """Leave our own topics out: each round would give the next one something to publish."""
        wanted = self._state.wanted_topics()
        return lambda topic: wanted(topic) and not topic.startswith(self._prefix)

    async def _send(self, partition: TopicPartition, ends: EndOffsets | None) -> None:
        value = None
        topic_id = self._topic_ids.get(partition.topic)
        if ends is not None:
            record = EndOffsetsRecord(
                SCHEMA,
                partition.topic,
                partition.partition,
                ends.start_offset,
                ends.last_stable_offset,
                ends.end_offset,
                ends.as_of_ms,
                ends.readable_end_offset,
                topic_id.hex() if topic_id else None,
            )
            value = msgspec.json.encode(record)
        await self._topic.send(key=str(partition).encode(), value=value)


def _offsets(ends: EndOffsets) -> tuple[int | None, ...]:
    return (
        ends.start_offset,
        ends.last_stable_offset,
        ends.end_offset,
        ends.readable_end_offset,
    )
