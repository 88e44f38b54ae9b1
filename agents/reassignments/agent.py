"""Partition reassignments: a probe puts them on caughtup-reassignments, an agent takes them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Collection, Iterable

import faust
from aiokafka.errors import KafkaError
from confluent_kafka import KafkaException
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.election.agent import until_active
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import aiokafka_config
from caughtup.agents.kafka.protocol.decoding import words
from caughtup.agents.probes.pace import Pace
from caughtup.agents.probes.reassignment_ends import Endings, KnownMovement
from caughtup.agents.probes.reassignments import ReassignmentLooks, Round
from caughtup.agents.process.health import Health
from caughtup.agents.progress import Progress
from caughtup.agents.reassignments.records import apply_record, take_up
from caughtup.agents.settings import Settings
from caughtup.agents.topics.applied import isolated_record
from caughtup.agents.topics.outbox import Outbox
from caughtup.agents.topics.publisher import TopicWriter
from caughtup.agents.topics.read_to_end import read_service_topic
from caughtup.agents.topics.reader import Slice
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking.observation import PartitionLook
from caughtup.models.records import cluster_observations
from caughtup.models.records.cluster_observations import CLUSTER_KEY, ClusterRecord
from caughtup.models.records.keys import encode_partition
from caughtup.models.records.movements import PARTITIONS
from caughtup.models.records.reassignments import FORMAT, ReassignmentRecord
from caughtup.models.records.topics import REASSIGNMENTS
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

PROBE = "reassignments"
#: So long are others sent before anything else has its turn.
_TURN_SECONDS = 0.01


def reassignments(
    app: faust.App,
    channel: faust.ChannelT,
    movements: TopicWriter,
    state: ClusterState,
    health: Health,
) -> None:
    """Register the reassignments agent: records in slices, the tracker updated, events sent.

    An instance that stands by tells nothing: once it is active it knows what was told.
    """
    outbox = Outbox(state.set_aside)

    @app.agent(channel, name="reassignments")
    async def apply(slices: faust.StreamT[Slice]) -> None:
        async for records in slices:
            for record in records:
                partition = apply_record(state, record.key, record.value)
                if partition is not None and health.standby is None:
                    for key, value in movement_records(state, partition):
                        outbox.put(movements, key, value)
            await outbox.flush()


def movement_records(state: ClusterState, partition: TopicPartition) -> list[tuple[bytes, bytes]]:
    """Make the records of what has become of a partition's movement; none where that fails."""
    with state.faults.isolated("movements", str(partition), now_ms()):
        key, movements = encode_partition(partition), state.partition_movements
        events = movements.look(state.reassignments, partition)
        return [(key, PARTITIONS.encode_fields(event)) for event in events]
    return []


class ReassignmentsProbe(Service):
    """Looks at what is in movement and publishes it, quicker and slower as it is worth it.

    ``reassignments_interval`` is the shortest pause between two looks. A movement's beginning is
    read back at the start, so that it has its age and its original replicas after a restart, too.
    """

    logger = logging.getLogger("mode.caughtup")  # its own comings and goings

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
        self._known: dict[TopicPartition, KnownMovement] = {}
        self._endings = Endings()
        #: Ends that were told, and that the agent hasn't taken yet.
        self._ended: set[TopicPartition] = set()
        self._missing: set[str] = set()

    def write_again(self) -> None:
        """Tell again what may have ended unseen: its topic was made anew.

        Every round writes all that moves; an end is told once.
        """
        self._ended.clear()

    @Service.task
    async def _run(self) -> None:
        await until_active(self, self._health)
        await self._read_back()
        while not self.should_stop:
            with self._state.faults.isolated(PROBE, "a round", now_ms(), self._failed):
                await self._look()
            await self.sleep(self._settings.reassignments_interval)

    async def _look(self) -> None:
        """Look again and again, until that fails."""
        try:
            async with ReassignmentLooks(self._config) as looks:
                while not self.should_stop:
                    await self.sleep(await self._round(looks))
        except (KafkaError, KafkaException, OSError, TimeoutError) as error:
            self._failed(error)

    async def _read_back(self) -> None:
        """Take up what was known before a restart: what ended meanwhile has to be told, too."""
        untold = {
            TopicPartition(event["topic"], event["partition"])
            for event in self._state.partition_movements.on_their_way()
        }
        while not self.should_stop:
            try:
                self._known = await asyncio.to_thread(self._read, untold)
                return
            except UserError as error:
                self._failed(error)
                await self.sleep(self._settings.reassignments_interval)

    def _read(self, untold: Collection[TopicPartition]) -> dict[TopicPartition, KnownMovement]:
        moving: dict[TopicPartition, KnownMovement] = {}
        for key, value in read_service_topic(
            self._settings, self._state, REASSIGNMENTS, Progress()
        ):
            with isolated_record(self._state, REASSIGNMENTS, key) as clock:
                take_up(moving, key, value, clock, untold)
        return moving

    async def _round(self, looks: ReassignmentLooks) -> float:
        """Look once, publish, and give the seconds to wait."""
        began = time.monotonic()
        self._adopt()
        found = await looks.look(self._known.keys())
        await self._publish(found)
        self._tell_missing(found.cluster.missing)
        if found.listed:
            self._health.succeeded(PROBE, now_ms())
        else:
            self._health.failed(PROBE)
        return self._pace.pause_seconds(found.moving, time.monotonic() - began)

    def _adopt(self) -> None:
        """Take up movements that others wrote, so that they end if the controller lists none."""
        moving = self._state.reassignments.moving
        self._ended &= moving.keys()
        for partition, tracked in moving.items():
            if partition not in self._known and partition not in self._ended:
                self._known[partition] = KnownMovement(
                    tracked.latest, tracked.since_ms, tracked.original
                )

    def _tell_missing(self, missing: Iterable[str]) -> None:
        """Log what could not be had, unless it couldn't the last time either, why ever."""
        subjects = {what.partition(": ")[0]: what for what in missing}
        for subject in sorted(subjects.keys() - self._missing):
            log.warning("reassignments: cannot tell %s", subjects[subject])
        self._missing = set(subjects)

    async def _publish(self, found: Round) -> None:
        cluster = ClusterRecord.from_look(found.cluster)
        value = cluster_observations.FORMAT.encode(cluster)
        await self._topic.send(key=CLUSTER_KEY, value=value)
        turn = time.monotonic()
        for look in found.moving:
            await self._send(self._note(look))
            if time.monotonic() - turn > _TURN_SECONDS:
                await asyncio.sleep(0)
                turn = time.monotonic()
        if found.listed:
            moving = {look.partition for look in found.moving}
            gone = sorted(self._known.keys() - moving)
            told = {partition: await self._unlisted(partition, found) for partition in gone}
            # A look that gets lost is followed by another, an end is told once: until it is there.
            for partition, written in told.items():
                if written:
                    await asyncio.gather(*written)
                    del self._known[partition]
                    self._ended.add(partition)

    def _note(self, look: PartitionLook) -> ReassignmentRecord:
        """Remember a look, and give its record with what is known of the movement's beginning."""
        self._endings.forget(look.partition)
        known = self._known.get(look.partition)
        since_ms, original = (known.since_ms, known.original) if known else (None, None)
        tracked = self._state.reassignments.moving.get(look.partition)
        if tracked is not None:
            since_ms, original = tracked.since_ms, tracked.original
        self._known[look.partition] = KnownMovement(look, since_ms, original)
        return ReassignmentRecord.from_look(look, since_ms, original)

    async def _unlisted(self, partition: TopicPartition, found: Round) -> list[Awaitable[object]]:
        """Tell what became of a partition; give what to wait for if that was its end."""
        known, as_of_ms = self._known[partition], found.cluster.as_of_ms
        if partition not in found.shapes:
            return []
        shape = found.shapes[partition]
        if not self._endings.is_over(known, shape):
            record = ReassignmentRecord.from_look(known.look, known.since_ms, known.original)
            record.as_of_ms, record.unlisted = as_of_ms, True
            await self._send(record)
            return []
        if partition not in self._state.reassignments.moving:
            # It ended while the service was down, whose tracker learns of it by this.
            await self._send(
                ReassignmentRecord.from_look(known.look, known.since_ms, known.original)
            )
        replicas, isr = ((), ()) if shape is None else (shape.replicas, shape.isr)
        record = ReassignmentRecord(
            FORMAT.schema, *partition, as_of_ms, replicas, isr=isr, ended=True
        )
        return [
            await self._topic.send(key=record.key, value=value)
            for value in (FORMAT.encode(record), None)
        ]

    async def _send(self, record: ReassignmentRecord) -> None:
        await self._topic.send(key=record.key, value=FORMAT.encode(record))

    def _failed(self, error: Exception) -> None:
        if self._health.failed(PROBE):
            reason = words(error) if isinstance(error, KafkaError) else str(error)
            log.warning("looking at reassignments: %s", reason or type(error).__name__)
