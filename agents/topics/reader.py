"""Read own topics and put their records on channels; every instance reads all partitions."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

from confluent_kafka import KafkaError
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.kept_channel import KeptChannel
from caughtup.agents.process.health import TOPICS_READER, Health
from caughtup.agents.settings import Settings
from caughtup.agents.topics.consumer import ConsumerRecord, Poll, StandaloneConsumer
from caughtup.agents.topics.definitions import topic_name
from caughtup.models.records.decoding import BAD_COMPRESSION
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

PROBE = "topics"
#: The records of a slice: an agent occupies the event loop for some 10 ms with one.
_SLICE_RECORDS = 500
#: The slices on a topic's channel from which on the topic is paused.
_MOST_WAITING = 20
_POLL_SECONDS = 0.2
_RETRY_SECONDS = 1.0

Slice = list[ConsumerRecord]


class TopicsReader(Service):
    """Reads own topics, each from its start, and puts slices of records on the topic's channel.

    ``channels``: by topic, without prefix. ``from_end``: the topics that are read from their end
    instead. A topic whose agent falls behind is paused, without delay for others. ``caught_up`` is
    set once all records that existed at the start are on the channels.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self,
        settings: Settings,
        health: Health,
        state: ClusterState,
        channels: Mapping[str, KeptChannel[Slice]],
        from_end: frozenset[str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._health = health
        self._refused = state.refused
        self._channels = {topic_name(settings, name): each for name, each in channels.items()}
        #: Topics to open, and whether to start at their end.
        self._to_open = {topic_name(settings, name): name in from_end for name in channels}
        self._clock = clock
        self._open_at = 0.0
        self.caught_up = asyncio.Event()

    def read_again(self, topic: str) -> None:
        """Read a recreated topic (named without prefix) from its start."""
        if (full := topic_name(self._settings, topic)) in self._channels:
            self._to_open[full] = False
            self._open_at = 0.0

    @Service.task
    async def _run(self) -> None:
        thread = ThreadPoolExecutor(1, "own-topics")
        in_thread = partial(asyncio.get_running_loop().run_in_executor, thread)
        consumer: StandaloneConsumer = await in_thread(StandaloneConsumer, self._settings)
        try:
            while not self.should_stop:
                await self._open(consumer, in_thread)
                await self._take(await in_thread(consumer.poll, _POLL_SECONDS))
                if not self._to_open and not consumer.unread:
                    self.caught_up.set()
                await in_thread(consumer.hold, self._full())
                self._health.pulses.beat(TOPICS_READER)
        finally:
            self._health.pulses.rest(TOPICS_READER)
            await in_thread(consumer.close)
            thread.shutdown(wait=False)

    async def _open(
        self,
        consumer: StandaloneConsumer,
        in_thread: Callable[..., Awaitable[dict[str, KafkaError]]],
    ) -> None:
        """Open the topics that are due; those that fail are retried, without delay for others."""
        if not self._to_open or self._clock() < self._open_at:
            return
        self._open_at = self._clock() + _RETRY_SECONDS
        opening, self._to_open = self._to_open, {}
        failed = await in_thread(consumer.open, opening)
        for topic, error in failed.items():
            self._failed(f"{topic}: {error.str()}")
            self._to_open.setdefault(topic, opening[topic])

    async def _take(self, poll: Poll) -> None:
        for topic, records in poll.records.items():
            rest = iter(records)
            while some := list(islice(rest, _SLICE_RECORDS)):
                await self._channels[topic].put(some)
                await asyncio.sleep(0)  # let the agent take it
        for topic, offset, why in poll.unreadable:
            name = topic.removeprefix(self._settings.topic_prefix)
            self._refused.refuse(name, None, BAD_COMPRESSION, f"offset {offset}: {why}", now_ms())
        if poll.errors:
            self._failed(poll.errors[0].str())
        elif poll.records:
            self._health.recovered(PROBE)

    def _full(self) -> list[str]:
        return [
            topic
            for topic, channel in self._channels.items()
            if channel.queue.qsize() >= _MOST_WAITING
        ]

    def _failed(self, why: str) -> None:
        if self._health.failed(PROBE):
            log.warning("reading own topics: %s; continuing", why)
