"""Find the topics of Connect worker clusters, read them from their start, and follow them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice

from confluent_kafka import KafkaException
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.process.health import CONNECT_READER, Health
from caughtup.agents.settings import Settings
from caughtup.agents.topics.applying import isolated_record
from caughtup.agents.topics.consumer import ConsumerRecord, Poll, StandaloneConsumer
from caughtup.models.connect_clusters.configuration import Configuration
from caughtup.models.connect_clusters.topic_sets import ClusterTopics, TopicSet, find_topic_sets
from caughtup.models.records.connect import decode_config, decode_source_offset, decode_status
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

PROBE = "connect"
#: How often to look for groups while there is none, and for topics.
_GROUPS_SECONDS = 0.5
_TOPICS_SECONDS = 30.0
#: How often to look for topics while those of a group are unknown.
_SOON_SECONDS = 2.0
_POLL_SECONDS = 0.2
#: The records that are applied without a pause, in a few milliseconds.
_SLICE_RECORDS = 100
#: The names of the topics in counts of refused records and faults.
_NAMES = TopicSet("connect config topic", "connect status topic", "connect offset topic")


class ConnectTopics:
    """Reads the topics of worker clusters, for a thread. Calls block and raise KafkaException."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._consumer = StandaloneConsumer(settings, committed=True)
        self._told = configured_topics(settings)
        self._open: set[str] = set()

    def look(self, state: ClusterState) -> dict[str, str]:
        """Find the worker clusters' topics, and open new ones; return errors by topic."""
        partitions = self._consumer.partition_counts()
        told = {topics for topics in self._told.values() if topics.config in partitions}
        found = find_topic_sets(partitions, self._settings.topic_prefix)
        taken = {topic for topics in told for topic in topics}
        sets = [*sorted(told), *(one for one in found if taken.isdisjoint(one.topics))]
        wanted = {topic for topics in sets for topic in topics.topics if topic in partitions}
        changed = dict.fromkeys(sorted(wanted ^ self._open), False)
        state.connect.told = self._told
        state.connect.read_topics(sets)
        if not changed:
            return {}
        failed = self._consumer.open(changed)
        self._open = wanted - failed.keys()
        return {topic: error.str() for topic, error in failed.items()}

    def poll(self, seconds: float) -> Poll:
        """Wait up to ``seconds`` for records, and return those that have arrived."""
        return self._consumer.poll(seconds)

    def read_to_end(self, state: ClusterState, patience_seconds: float) -> None:
        """Read to the present end, for a command's snapshot. Waits up to ``patience_seconds``."""
        state.connect.unreadable = self.look(state)
        until = time.monotonic() + patience_seconds
        while time.monotonic() < until:
            poll = self.poll(_POLL_SECONDS)
            for topic, records in poll.records.items():
                apply_records(state, topic, records)
            self.note_read(state)
            unreadable = {topic: error.str() for topic, error in poll.refused.items()}
            state.connect.unreadable.update(unreadable)
            if not poll.records and (state.connect.looked or unreadable):
                return

    def note_read(self, state: ClusterState) -> None:
        """Record in the state which topics were read to the end that they had when they were opened."""
        unread = {topic for topic, _ in self._consumer.unread}
        for topics, known in state.connect.topics.items():
            known.read.update(topic for topic in topics.topics if topic not in unread)
        state.connect.looked = not unread

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


class ConnectReader(Service):
    """Reads the topics of Connect worker clusters, once there is a Connect group."""

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self,
        settings: Settings,
        health: Health,
        state: ClusterState,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._health = health
        self._state = state
        self._clock = clock
        self._look_at = 0.0

    @Service.task
    async def _run(self) -> None:
        while not self._state.connect.groups:
            await self.sleep(_GROUPS_SECONDS)
            if self.should_stop:
                return
        thread = ThreadPoolExecutor(1, "connect-topics")
        in_thread = partial(asyncio.get_running_loop().run_in_executor, thread)
        topics: ConnectTopics = await in_thread(ConnectTopics, self._settings)
        try:
            while not self.should_stop:
                await self._look(topics, in_thread)
                await self._take(await in_thread(topics.poll, _POLL_SECONDS))
                topics.note_read(self._state)
                self._health.pulses.beat(CONNECT_READER)
        finally:
            self._health.pulses.rest(CONNECT_READER)
            await in_thread(topics.close)
            thread.shutdown(wait=False)

    async def _look(
        self, topics: ConnectTopics, in_thread: Callable[..., Awaitable[dict[str, str]]]
    ) -> None:
        if self._clock() < self._look_at:
            return
        try:
            failed = await in_thread(topics.look, self._state)
        except KafkaException as error:
            failed = {"topics": str(error.args[0])}
        connect = self._state.connect
        lost = failed or any(connect.topics_of(g)[0].topics is None for g in connect.groups)
        self._look_at = self._clock() + (_SOON_SECONDS if lost else _TOPICS_SECONDS)
        connect.unreadable = dict(failed)
        for topic, why in failed.items():
            self._failed(f"{topic}: {why}")

    async def _take(self, poll: Poll) -> None:
        unreadable = {topic: error.str() for topic, error in poll.refused.items()}
        self._state.connect.unreadable.update(unreadable)
        for topic, records in poll.records.items():
            rest = iter(records)
            while some := list(islice(rest, _SLICE_RECORDS)):
                apply_records(self._state, topic, some)
                await asyncio.sleep(0)
        if poll.errors:
            self._failed(poll.errors[0].str())
        elif poll.records:
            self._health.recovered(PROBE)
            for topic in poll.records:
                self._state.connect.unreadable.pop(topic, None)

    def _failed(self, why: str) -> None:
        if self._health.failed(PROBE):
            log.warning("reading topics of Connect: %s; continuing", why)


def configured_topics(settings: Settings) -> dict[str, TopicSet]:
    """Return the topics of worker clusters in the settings, by group."""
    told = {}
    for line in settings.connect_topics:
        group, config, status, offset = line.rsplit(":", 3)
        told[group] = TopicSet(config, status, offset)
    return told


def apply_records(state: ClusterState, topic: str, records: Iterable[ConsumerRecord]) -> None:
    """Apply records of a topic to every worker cluster that uses it."""
    for topics, known in state.connect.topics.items():
        if topic in topics.topics:
            for record in records:
                _apply(state, topics, known, topic, record)


def _apply(
    state: ClusterState,
    topics: TopicSet,
    known: ClusterTopics,
    topic: str,
    record: ConsumerRecord,
) -> None:
    name = _NAMES[topics.index(topic)]
    with isolated_record(state, name, record.key):
        # Workers set the timestamps, whose clocks may be wrong: a future time counts as now.
        at_ms = max(0, min(record.at_ms, now_ms()))
        if topic == topics.config:
            if record.offset < known.configuration.next_offset:
                known.configuration = Configuration()  # the topic was recreated
            known.configuration.note(record.offset)
            event = decode_config(record.key, record.value)
            known.configuration.apply(event, record.offset, at_ms)
        elif topic == topics.status:
            known.statuses.apply(decode_status(record.key, record.value), at_ms)
        else:
            known.offsets.apply(decode_source_offset(record.key, record.value), at_ms)
