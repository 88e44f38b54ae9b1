"""The Python application of the tests loses nothing itself: what it is given, it keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from aiokafka import TopicPartition

from caughtup.followers.python.settings import FollowerSettings
from caughtup.followers.python.topology import TopicGroup, Topology
from caughtup.models.ids import TaskId
from tests.support.followers.python_application import TABLE, PythonMember

PARTITION = TopicPartition("placed", 0)


class Record(NamedTuple):
    key: bytes
    value: bytes
    offset: int


class Tables:
    """Tables that are there at once."""

    def __init__(self) -> None:
        self.held: dict[bytes, bytes] = {}

    async def put(self, task: TaskId, table: str, key: bytes, value: bytes) -> None:
        self.held[key] = value

    async def flush(self) -> None:
        pass


class Rebalancing:
    """A consumer whose first ``getmany`` waits through a rebalance, as aiokafka's does."""

    def __init__(self, member: PythonMember) -> None:
        self._member = member
        self._asked = 0
        self.asked_again = asyncio.Event()

    async def getmany(self, timeout_ms: int) -> Mapping[TopicPartition, Iterable[Record]]:
        self._asked += 1
        if self._asked > 1:
            self.asked_again.set()
            await asyncio.Event().wait()
        await self._member.on_partitions_revoked([PARTITION])
        await self._member.on_partitions_assigned([PARTITION])
        return {PARTITION: [Record(b"k", b"v", 0)]}


async def test_what_comes_with_a_new_assignment_is_processed() -> None:
    topology = Topology([TopicGroup(("placed",), {TABLE: "latest"})])
    member = PythonMember("127.0.0.1:1", "orders", topology, "one", FollowerSettings(), {})
    await member.producer.stop()
    await member.consumer.stop()
    member.tables = tables = Tables()
    member.consumer = consumer = Rebalancing(member)
    work = asyncio.create_task(member._process())
    await asyncio.wait_for(consumer.asked_again.wait(), 10)
    await member.kill([work])
    assert tables.held == {b"k": b"v"}
    assert member.processed == 1
