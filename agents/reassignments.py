"""Partition reassignments: a probe puts them on caughtup-reassignments, an agent takes them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import faust
import msgspec
from aiokafka.errors import ClusterAuthorizationFailedError, KafkaError
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.health import Health
from caughtup.agents.kafka_config import aiokafka_config, rdkafka_config
from caughtup.agents.protocol import ClusterProtocol, ListedReassignment
from caughtup.agents.settings import Settings
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignment_look import PartitionLook
from caughtup.models.state import ClusterState

log = logging.getLogger(__name__)

SCHEMA = 1
PROBE = "reassignments"
_TIMEOUT_SECONDS = 10.0


class ReassignmentRecord(msgspec.Struct, omit_defaults=True):
    """The value on caughtup-reassignments: broker ids, offsets and ms.

    ``ended`` marks the last look at a partition that is no longer listed; ``replicas`` is then
    its shape now, empty if it is gone. A tombstone follows.
    """

    schema: int
    topic: str
    partition: int
    as_of_ms: int
    replicas: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    leader: int | None = None
    log_ends: dict[int, int] = {}
    ended: bool = False


_decode = msgspec.json.Decoder(ReassignmentRecord).decode


def reassignments(app: faust.App, topic: faust.TopicT, state: ClusterState) -> None:
    """Register the reassignments agent: one record in, the tracker updated."""

    @app.agent(topic, name="reassignments")
    async def apply(records: faust.StreamT[bytes]) -> None:
        async for event in records.events():
            apply_record(state, event.key, event.value)


def apply_record(state: ClusterState, key: bytes | None, value: bytes | None) -> None:
    """Take one record of caughtup-reassignments; a malformed one is logged and skipped."""
    if value is None:
        return
    try:
        record = _decode(value)
    except msgspec.MsgspecError as error:
        log.warning("skipped a record of reassignments, key %r: %s", key, error)
        return
    partition = TopicPartition(record.topic, record.partition)
    if record.ended:
        state.reassignments.end(partition, record.replicas or None, record.isr, record.as_of_ms)
        return
    state.reassignments.apply(
        PartitionLook(
            partition=partition,
            replicas=record.replicas,
            adding=record.adding,
            removing=record.removing,
            isr=record.isr,
            leader=record.leader,
            log_ends=record.log_ends,
            as_of_ms=record.as_of_ms,
        )
    )


def _words(error: Exception) -> str:
    if isinstance(error, ClusterAuthorizationFailedError):  # its own hold the broker's request
        return "missing: DESCRIBE on the cluster"
    return str(error) or type(error).__name__


class ReassignmentsProbe(Service):
    """Asks the controller what is in movement, and the brokers how far their replicas are."""

    logger = logging.getLogger("mode.caughtup")  # its own comings and goings

    def __init__(
        self, settings: Settings, health: Health, state: ClusterState, topic: faust.TopicT
    ) -> None:
        super().__init__()
        self._interval = settings.reassignments_interval
        self._config = aiokafka_config(settings)
        self._admin = AdminClient(rdkafka_config(settings))
        self._health = health
        self._state = state
        self._topic = topic

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            try:
                async with ClusterProtocol(self._config) as protocol:
                    while not self.should_stop:
                        await self._round(protocol)
                        self._health.succeeded(PROBE, now_ms())
                        await self.sleep(self._interval)
            except (KafkaError, KafkaException, OSError, TimeoutError) as error:
                if self._health.failed(PROBE):
                    log.warning("listing reassignments: %s", _words(error))
                await self.sleep(self._interval)

    async def _round(self, protocol: ClusterProtocol) -> None:
        listed = await protocol.list_reassignments()
        finished = self._state.reassignments.moving.keys() - listed.keys()
        topics = {partition.topic for partition in listed.keys() | finished}
        shapes = await asyncio.to_thread(self._describe, topics) if topics else {}
        log_ends = await self._log_ends(protocol, listed)
        as_of = now_ms()
        for partition, movement in sorted(listed.items()):
            isr, leader, _ = shapes.get(partition, ((), None, ()))
            ends = {
                broker: found[partition] for broker, found in log_ends.items() if partition in found
            }
            await self._send(
                ReassignmentRecord(
                    SCHEMA, *partition, as_of, *movement, isr=isr, leader=leader, log_ends=ends
                )
            )
        for partition in sorted(finished):
            isr, _, replicas = shapes.get(partition, ((), None, ()))
            record = ReassignmentRecord(SCHEMA, *partition, as_of, replicas, isr=isr, ended=True)
            await self._send(record)
            await self._topic.send(key=str(partition).encode(), value=None)

    async def _send(self, record: ReassignmentRecord) -> None:
        key = f"{record.topic}-{record.partition}".encode()
        await self._topic.send(key=key, value=msgspec.json.encode(record))

    async def _log_ends(
        self, protocol: ClusterProtocol, listed: dict[TopicPartition, ListedReassignment]
    ) -> dict[int, dict[TopicPartition, int]]:
        """Ask every broker that holds one of the replicas; one that doesn't answer is left out."""
        by_broker: dict[int, list[TopicPartition]] = {}
        for partition, movement in sorted(listed.items()):
            for broker in movement.replicas:
                by_broker.setdefault(broker, []).append(partition)
        found = {}
        for broker, partitions in sorted(by_broker.items()):
            try:
                found[broker] = (await protocol.replica_log_ends(broker, partitions)).ends
            except (KafkaError, OSError, TimeoutError) as error:
                log.debug("broker %d doesn't tell its log ends: %r", broker, error)
        return found

    def _describe(
        self, topics: Iterable[str]
    ) -> dict[TopicPartition, tuple[tuple[int, ...], int | None, tuple[int, ...]]]:
        """Give ISR, leader and replicas of every partition; a topic that is gone is left out."""
        futures = self._admin.describe_topics(
            TopicCollection(sorted(topics)), request_timeout=_TIMEOUT_SECONDS
        )
        shapes = {}
        for name, future in futures.items():
            try:
                described = future.result()
            except KafkaException as error:
                log.debug("topic %s: %s", name, error.args[0].str())
                continue
            for info in described.partitions:
                shapes[TopicPartition(name, info.id)] = (
                    tuple(node.id for node in info.isr),
                    info.leader.id if info.leader else None,
                    tuple(node.id for node in info.replicas),
                )
        return shapes
