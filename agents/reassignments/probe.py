"""The probe of reassignments: observes them, and writes caughtup-reassignments."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Collection, Iterable

from aiokafka.errors import KafkaError
from confluent_kafka import KafkaException
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.election.agent import until_active
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.decoding import explain_failure
from caughtup.agents.probes.reassignments import Pace, ReassignmentObserver, ReassignmentRound
from caughtup.agents.process.health import Health
from caughtup.agents.progress import Progress
from caughtup.agents.reassignments.agent import read_back
from caughtup.agents.settings import Settings
from caughtup.agents.topics.applying import isolated_record
from caughtup.agents.topics.publisher import TopicWriter
from caughtup.agents.topics.read_to_end import read_service_topic
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.controllers import reverted
from caughtup.models.reassignments.ends import Endings, is_another_reassignment
from caughtup.models.reassignments.shown import recorded
from caughtup.models.records.fields import changed
from caughtup.models.records.reassignments import (
    CLUSTER_FORMAT,
    CLUSTER_KEY,
    FORMAT,
    ClusterRecord,
    ReassignmentRecord,
)
from caughtup.models.records.topics import REASSIGNMENTS
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

PROBE = "reassignments"
#: How long observations are sent before the event loop gets a turn.
_TURN_SECONDS = 0.01


class ReassignmentsProbe(Service):
    """Observes reassignments and publishes them, more often while one is near its end.

    ``reassignments_interval`` is the shortest pause between two rounds. At the start it reads back
    when each reassignment began and its original replicas, so that they survive a restart.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self, settings: Settings, health: Health, state: ClusterState, topic: TopicWriter
    ) -> None:
        super().__init__()
        self._settings = settings
        self._config = aiokafka_config(settings)
        self._pace = Pace(settings.reassignments_interval)
        self._health = health
        self._state = state
        self._topic = topic
        #: By partition: the last record that was read back or sent, until its end is sent.
        self._known: dict[TopicPartition, ReassignmentRecord] = {}
        self._endings = Endings()
        #: Partitions whose end was published and not yet applied by the agent.
        self._ended: set[TopicPartition] = set()
        self._missing: set[str] = set()

    def write_again(self) -> None:
        """Publish ends again, since the topic was recreated.

        Ongoing reassignments are published in every round, an end only once.
        """
        self._ended.clear()

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            await until_active(self, self._health, cluster_wide=True)
            await self._read_back()
            await self._watch()

    async def _watch(self) -> None:
        """Observe as long as it is this instance that watches reassignments."""
        while self._goes_on():
            with self._state.faults.isolated(PROBE, "a round", now_ms(), self._failed):
                await self._observe()
            await self.sleep(self._settings.reassignments_interval)

    def _goes_on(self) -> bool:
        return not self.should_stop and self._health.cluster_wide()

    async def _observe(self) -> None:
        """Observe in rounds until one fails."""
        try:
            async with ReassignmentObserver(self._config) as observer:
                while self._goes_on():
                    await self.sleep(await self._round(observer))
        except (KafkaError, KafkaException, OSError, TimeoutError) as error:
            self._failed(error)

    async def _read_back(self) -> None:
        """Read back the reassignments known before a restart: some may have ended meanwhile."""
        unfinished = frozenset(self._state.reassignment_events.partitions())
        while not self.should_stop:
            try:
                self._known = await asyncio.to_thread(self._read, unfinished)
                return
            except UserError as error:
                self._failed(error)
                await self.sleep(self._settings.reassignments_interval)

    def _read(
        self, unfinished: Collection[TopicPartition]
    ) -> dict[TopicPartition, ReassignmentRecord]:
        known: dict[TopicPartition, ReassignmentRecord] = {}
        for key, value in read_service_topic(
            self._settings, self._state, REASSIGNMENTS, Progress()
        ):
            with isolated_record(self._state, REASSIGNMENTS, key) as clock:
                read_back(known, key, value, clock, unfinished)
        return known

    async def _round(self, observer: ReassignmentObserver) -> float:
        """Observe once, publish, and return the pause in seconds."""
        began = time.monotonic()
        self._add_published()
        found = await observer.observe(self._known.keys())
        await self._publish(found)
        self._log_missing(found.cluster.missing)
        if found.listed:
            self._health.succeeded(PROBE, now_ms())
        else:
            self._health.failed(PROBE)
        return self._pace.pause_seconds(found.ongoing, time.monotonic() - began)

    def _add_published(self) -> None:
        """Add reassignments that other instances published, so that their ends are noticed."""
        published = self._state.reassignments.ongoing
        self._ended &= published.keys()
        for partition in published.keys() - self._known.keys() - self._ended:
            known = self._last_record(partition)
            if known is not None:
                self._known[partition] = known

    def _last_record(self, partition: TopicPartition) -> ReassignmentRecord | None:
        """Return the last published record of a reassignment, else the last one sent."""
        tracked = self._state.reassignments.ongoing.get(partition)
        if tracked is None:
            return self._known.get(partition)
        latest = changed(tracked.latest, since_ms=tracked.since_ms, original=tracked.original)
        return recorded(latest, None)

    def _log_missing(self, missing: Iterable[str]) -> None:
        """Log what could not be read, unless it could not in the last round either."""
        subjects = {what.partition(": ")[0]: what for what in missing}
        for subject in sorted(subjects.keys() - self._missing):
            log.warning("reassignments: unknown: %s", subjects[subject])
        self._missing = set(subjects)

    async def _publish(self, found: ReassignmentRound) -> None:
        await self._topic.send(key=CLUSTER_KEY, value=CLUSTER_FORMAT.encode(found.cluster))
        turn = time.monotonic()
        for observation in found.ongoing:
            await self._send(self._note(observation, found.cluster))
            if time.monotonic() - turn > _TURN_SECONDS:
                await asyncio.sleep(0)
                turn = time.monotonic()
        if found.listed:
            listed = {observation.topic_partition for observation in found.ongoing}
            gone = sorted(self._known.keys() - listed)
            sent = {partition: await self._unlisted(partition, found) for partition in gone}
            # Ends are waited for: a lost observation is followed by another, an end is not.
            for partition, written in sent.items():
                if written:
                    await asyncio.gather(*written)
                    del self._known[partition]
                    self._ended.add(partition)

    def _note(self, observation: ReassignmentRecord, cluster: ClusterRecord) -> ReassignmentRecord:
        """Keep an observation, and return its record with start time and original replicas.

        They are unknown if it is another reassignment that replaced the last one.
        """
        partition = observation.topic_partition
        self._endings.forget(partition)
        last = self._last_record(partition)
        if last is not None:
            original = reverted(last) if last.original is None else last.original
            if not is_another_reassignment(last, original, observation, cluster):
                began = {"since_ms": last.since_ms, "original": last.original}
                observation = changed(observation, **began)
        self._known[partition] = observation
        return self._with_verdict(observation)

    def _with_verdict(self, record: ReassignmentRecord) -> ReassignmentRecord:
        """Return a record with the last computed verdict and figures of its reassignment."""
        partition = record.topic_partition
        tracked = self._state.reassignments.ongoing.get(partition)
        watch = self._state.reassignment_watch
        return recorded(record, None if tracked is None else watch.find(partition, tracked))

    async def _unlisted(
        self, partition: TopicPartition, found: ReassignmentRound
    ) -> list[Awaitable[object]]:
        """Publish that a partition is no longer listed; return the sends to await if it ended."""
        known, as_of_ms = self._known[partition], found.cluster.as_of_ms
        if partition not in found.described:
            return []
        info = found.described[partition]
        replicas, isr = (None, ()) if info is None else (info.replicas, info.isr)
        if not self._endings.is_over(known, replicas, isr):
            await self._send(self._with_verdict(changed(known, as_of_ms=as_of_ms, unlisted=True)))
            return []
        if partition not in self._state.reassignments.ongoing:
            # It ended while the service was down; the tracker needs the record to end it.
            await self._send(known)
        record = ReassignmentRecord(
            FORMAT.schema, *partition, as_of_ms, replicas or (), isr=isr, ended=True
        )
        return [
            await self._topic.send(key=record.key, value=value)
            for value in (FORMAT.encode(record), None)
        ]

    async def _send(self, record: ReassignmentRecord) -> None:
        await self._topic.send(key=record.key, value=FORMAT.encode(record))

    def _failed(self, error: Exception) -> None:
        if self._health.failed(PROBE):
            reason = explain_failure(error) if isinstance(error, KafkaError) else str(error)
            log.warning("observing reassignments: %s", reason or type(error).__name__)
