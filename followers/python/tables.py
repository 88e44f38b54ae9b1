"""Tables in memory, a dict for each changelog partition, restored from Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.errors import KafkaError
from aiokafka.structs import RecordMetadata

from caughtup.followers.python.kafka.log_ends import Connection, RepeatedProblem
from caughtup.followers.python.topology import Resume, Topology
from caughtup.models.ids import TaskId, TopicPartition

_POLL_MS = 200
_RETRY_SECONDS = 1.0
_EMPTY: Mapping[bytes, bytes] = MappingProxyType({})


class ChangelogTables:
    """An application's tables; standbys follow their changelogs continuously.

    ``run`` has to run in the background; call all other methods on the same event loop.
    """

    def __init__(
        self, connection: Connection, topology: Topology, producer: AIOKafkaProducer
    ) -> None:
        self._connection = connection
        self._topology = topology
        self._producer = producer
        self._tables: dict[TopicPartition, dict[bytes, bytes]] = {}
        self._positions: dict[TopicPartition, int] = {}
        self._written: list[asyncio.Future[RecordMetadata]] = []
        self._active: frozenset[TaskId] = frozenset()
        self._standby: frozenset[TaskId] = frozenset()
        self._restored: set[TaskId] = set()
        #: Actives that do not run yet: they may not have reached their changelogs' ends.
        self._pending: set[TaskId] = set()
        self._resume: Resume = lambda task: None
        self._changed = asyncio.Event()
        self._complaint = RepeatedProblem()

    def positions(self) -> Mapping[TopicPartition, int]:
        """Return the next offset to restore of each copy."""
        return self._positions

    def restored(self, task: TaskId) -> bool:
        """Return whether a task has been restored since it became active here."""
        return task in self._restored

    def assigned(
        self, active: frozenset[TaskId], standby: frozenset[TaskId], resume: Resume
    ) -> None:
        """Apply an assignment; source: ``Copies.assigned``."""
        self._active, self._standby, self._resume = active, standby, resume
        self._restored &= active
        self._pending = set(active)
        wanted = {
            one for task in active | standby for one in self._topology.tables_of(task).values()
        }
        for one in [one for one in self._tables if one not in wanted]:
            del self._tables[one]
            self._positions.pop(one, None)
        for one in wanted:
            self._tables.setdefault(one, {})
            self._positions.setdefault(one, 0)
        self._changed.set()

    def table(self, task: TaskId, name: str) -> Mapping[bytes, bytes]:
        """Return a task's present table; that of a standby as far as it is restored."""
        changelog = self._topology.tables_of(task)[name]
        return MappingProxyType(self._tables[changelog]) if changelog in self._tables else _EMPTY

    async def put(self, task: TaskId, name: str, key: bytes, value: bytes | None) -> None:
        """Set a key in an active's table and its changelog; None deletes. Raises KafkaError."""
        changelog = self._topology.tables_of(task)[name]
        sent = await self._producer.send(changelog.topic, value, key, partition=changelog.partition)
        _set(self._tables[changelog], key, value)
        self._written.append(sent)

    async def flush(self) -> None:
        """Wait until every change is in its changelog. Raises KafkaError if one is not.

        Call it before offsets are committed, and before partitions are revoked.
        """
        written, self._written = self._written, []
        for metadata in await asyncio.gather(*written):
            changelog = TopicPartition(metadata.topic, metadata.partition)
            if changelog in self._positions:
                after = metadata.offset + 1
                self._positions[changelog] = max(self._positions[changelog], after)

    async def run(self) -> None:
        """Restore until cancelled."""
        while True:
            consumer = AIOKafkaConsumer(
                **self._connection,
                client_id="caughtup-tables",
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                isolation_level="read_committed",
            )
            try:
                await consumer.start()
                await self._restore(consumer)
            except (KafkaError, OSError) as error:
                self._complaint.say(f"cannot restore tables: {error!r}")
                await asyncio.sleep(_RETRY_SECONDS)
            finally:
                await consumer.stop()

    async def _restore(self, consumer: AIOKafkaConsumer) -> None:
        """Read the changelogs of standbys, and of pending actives up to their ends."""
        targets: dict[TopicPartition, int] = {}
        read: set[TopicPartition] | None = None
        while True:
            if self._changed.is_set() or read is None:
                self._changed.clear()
                read = self._to_read()
                targets = await self._begin(consumer, read)
            if not read:
                await self._changed.wait()
                continue
            records = await consumer.getmany(timeout_ms=_POLL_MS)
            if self._changed.is_set():
                # The records may be of copies that are gone, or of ones that have become active.
                continue
            for found in records.values():
                for record in found:
                    self._apply(record)
            for one in read:
                at = await consumer.position(KafkaPartition(*one))
                if not self._changed.is_set():
                    self._move(one, at)
            self._complete(targets)

    def _to_read(self) -> set[TopicPartition]:
        tasks = self._standby | self._pending
        return {one for task in tasks for one in self._topology.tables_of(task).values()}

    async def _begin(
        self, consumer: AIOKafkaConsumer, read: set[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Seek to each copy's position; return the end offsets of pending actives' changelogs."""
        consumer.assign([KafkaPartition(*one) for one in sorted(read)])
        for one in sorted(read):
            consumer.seek(KafkaPartition(*one), self._positions.get(one, 0))
        pending = sorted(
            KafkaPartition(*one)
            for task in self._pending
            for one in self._topology.tables_of(task).values()
        )
        ends = await consumer.end_offsets(pending) if pending else {}
        return {TopicPartition(*one): end for one, end in ends.items()}

    def _complete(self, targets: Mapping[TopicPartition, int]) -> None:
        """Resume actives whose tables have everything up to the end offsets at their assignment."""
        if self._changed.is_set():
            return
        for task in sorted(self._pending):
            changelogs = self._topology.tables_of(task).values()
            if all(one in targets and self._positions[one] >= targets[one] for one in changelogs):
                self._pending.remove(task)
                self._restored.add(task)
                self._changed.set()
                self._resume(task)

    def _apply(self, record: ConsumerRecord) -> None:
        one = TopicPartition(record.topic, record.partition)
        if record.offset < self._positions[one]:
            self._move(one, record.offset)
        _set(self._tables[one], record.key, record.value)
        self._positions[one] = record.offset + 1

    def _move(self, one: TopicPartition, position: int) -> None:
        """Set a copy's position; a smaller one means a recreated log: restore it again."""
        if position < self._positions[one]:
            self._tables[one].clear()
        self._positions[one] = position


def _set(table: dict[bytes, bytes], key: bytes, value: bytes | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
