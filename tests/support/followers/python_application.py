"""A small Python application that follows: a table with the latest record of each key."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.abc import ConsumerRebalanceListener

from caughtup.followers.aiokafka import Follower
from caughtup.followers.python.settings import FollowerSettings
from caughtup.followers.python.tables import ChangelogTables
from caughtup.followers.python.topology import Resume, Topology
from caughtup.models.ids import TaskId

SECONDS = 90.0
TABLE = "latest"
_Seen = TypeVar("_Seen")


class WatchedTables(ChangelogTables):
    """Records how much of its changelog each active had restored when it became active here."""

    def __init__(self, connection: Mapping[str, Any], topology: Topology, producer: Any) -> None:
        super().__init__(connection, topology, producer)
        self.begun: list[tuple[TaskId, int]] = []
        self.active: frozenset[TaskId] = frozenset()
        self.standby: frozenset[TaskId] = frozenset()

    def assigned(
        self, active: frozenset[TaskId], standby: frozenset[TaskId], resume: Resume
    ) -> None:
        for task in sorted(active - self.active):
            (changelog,) = self._topology.tables_of(task).values()
            self.begun.append((task, self.positions().get(changelog, 0)))
        self.active, self.standby = active, standby
        super().assigned(active, standby, resume)


class PythonMember(ConsumerRebalanceListener):
    """An instance of the application, which commits before its partitions are revoked."""

    def __init__(
        self,
        bootstrap_servers: str,
        group: str,
        topology: Topology,
        name: str,
        settings: FollowerSettings,
        config: Mapping[str, Any],
    ) -> None:
        connection = {"bootstrap_servers": bootstrap_servers}
        self.name = name
        self.topology = topology
        self.producer = AIOKafkaProducer(**connection)
        self.tables = WatchedTables(connection, topology, self.producer)
        self.follower = Follower(
            group,
            topology,
            self.tables,
            connection,
            config=config,
            settings=settings,
            client_id=name,
        )
        self.consumer = AIOKafkaConsumer(
            **connection,
            client_id=name,
            group_id=group,
            partition_assignment_strategy=(self.follower.assignor,),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            heartbeat_interval_ms=200,
        )
        self.processed = 0
        self._next: dict[KafkaPartition, int] = {}
        self._lock = asyncio.Lock()
        self._epoch = 0
        self._work: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        await self.producer.start()
        await self.follower.start(self.consumer)
        self.consumer.subscribe(self.topology.topics, listener=self)
        await self.consumer.start()
        self._work = [
            asyncio.create_task(self.tables.run()),
            asyncio.create_task(self._process()),
        ]

    async def stop(self) -> None:
        await self.kill(self._work[1:])
        await self._commit()
        await self.consumer.stop()
        await self.kill(self._work)
        await self.follower.stop()
        await self.producer.stop()

    async def kill(self, work: Iterable[asyncio.Task[None]]) -> None:
        for task in work:
            task.cancel()
        for done in await asyncio.gather(*work, return_exceptions=True):
            assert isinstance(done, asyncio.CancelledError), done

    def check(self) -> None:
        """Fail if one of its tasks has ended."""
        for task in self._work:
            if task.done():
                task.result()

    async def on_partitions_revoked(self, revoked: Iterable[KafkaPartition]) -> None:
        async with self._lock:
            self._epoch += 1
            await self._commit()

    async def on_partitions_assigned(self, assigned: Iterable[KafkaPartition]) -> None:
        pass

    async def _commit(self) -> None:
        await self.tables.flush()
        committed, self._next = self._next, {}
        if committed:
            await self.consumer.commit(committed)

    async def _process(self) -> None:
        while True:
            batches = await self.consumer.getmany(timeout_ms=100)
            # Not earlier: during a rebalance it waits, and then returns the new assignment's
            # records.
            epoch = self._epoch
            async with self._lock:
                if epoch != self._epoch:
                    continue
                for partition, records in batches.items():
                    task = TaskId(0, partition.partition)
                    for record in records:
                        await self.tables.put(task, TABLE, record.key, record.value)
                    self._next[partition] = records[-1].offset + 1
                    self.processed += len(records)

    def table(self, partition: int) -> dict[bytes, bytes]:
        return dict(self.tables.table(TaskId(0, partition), TABLE))


async def wait_until(
    what: str,
    ask: Callable[[], _Seen],
    members: Iterable[PythonMember] = (),
    seconds: float = SECONDS,
) -> _Seen:
    """Call ``ask`` until it returns a true value, and return that."""
    deadline = time.monotonic() + seconds
    while not (seen := ask()):
        for member in members:
            member.check()
        told = [(m.name, sorted(m.tables.active), sorted(m.tables.standby)) for m in members]
        assert time.monotonic() < deadline, f"after {seconds:.0f} s still not: {what}; {told}"
        await asyncio.sleep(0.05)
    return seen
