"""Connect worker clusters' topics → the state: found, read from their start, and then on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any

from confluent_kafka import KafkaException
from mode import Service

from caughtup.agents.connect.applying import apply_records, told_topics
from caughtup.agents.process.health import Health
from caughtup.agents.process.pulses import CONNECT_READER
from caughtup.agents.settings import Settings
from caughtup.agents.topics.standalone_consumer import Poll, StandaloneConsumer
from caughtup.models.connect_clusters.topic_sets import find_topic_sets
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

PROBE = "connect"
#: Seconds between two looks for groups, while there is none, and for topics.
_GROUPS_SECONDS = 0.5
_TOPICS_SECONDS = 30.0
#: The same while a group's topics aren't known.
_SOON_SECONDS = 2.0
_POLL_SECONDS = 0.2
#: Records that are applied in one go: some milliseconds' work.
_SLICE_RECORDS = 100


class ConnectTopics:
    """The topics of worker clusters, as a thread reads them: every call blocks.

    Calls raise KafkaException.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._consumer = StandaloneConsumer(settings)
        self._told = told_topics(settings)
        self._open: set[str] = set()

    def look(self, state: ClusterState) -> dict[str, str]:
        """Look which topics there are, and open those that are new; return what failed, by topic."""
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
        """Wait so long for records, and return what is there."""
        return self._consumer.poll(seconds)

    def note_read(self, state: ClusterState) -> None:
        """Note which topics were read as far as they went when they were opened."""
        unread = {topic for topic, _ in self._consumer.unread}
        for topics, known in state.connect.topics.items():
            known.read.update(topic for topic in topics.topics if topic not in unread)
        state.connect.looked = not unread

    def close(self) -> None:
        """Leave the cluster."""
        self._consumer.close()


class ConnectReader(Service):
    """Reads the topics of Connect worker clusters, from the moment there is a Connect group."""

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

    async def _look(self, topics: ConnectTopics, in_thread: Callable[..., Awaitable[Any]]) -> None:
        if self._clock() < self._look_at:
            return
        try:
            failed: dict[str, str] = await in_thread(topics.look, self._state)
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
