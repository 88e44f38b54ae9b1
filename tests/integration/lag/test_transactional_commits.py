"""Plain and transactional commits of groups on one partition: after each step what OffsetFetch says.

Live, and by a reader that starts then. COMMIT_HISTORIES histories, drawn from seeds.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Iterator
from functools import partial
from types import TracebackType
from typing import Self

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka.offset_log import OffsetLog
from caughtup.agents.offsets.agent import Changes, decode_live, decode_past
from caughtup.agents.settings import Settings
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.fleet.offset_commits import make_offsets_topic
from caughtup.models.commits.applying import apply_live, apply_past
from caughtup.models.commits.table import CommitTable
from caughtup.models.histories.end_offsets import EndOffsetTable
from tests.support.service import wait_for

HISTORIES = int(os.environ.get("COMMIT_HISTORIES", "20"))
TOPIC, PARTITIONS, STEPS = "orders", 2, 14
#: By group and partition.
Committed = dict[tuple[str, int], int]


@pytest.fixture(scope="module")
def brokers() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(broker_properties={"offsets.topic.num.partitions": "1"}) as cluster:
        make_offsets_topic(cluster)
        create_topics(cluster, {TOPIC: PARTITIONS})
        yield cluster


class Following:
    """The log of commits, followed in a thread into a table."""

    def __init__(self, cluster: EmbeddedCluster, *, follows: bool = True) -> None:
        self._settings = Settings(bootstrap_servers=cluster.bootstrap_servers)
        self._follows = follows
        self._table = CommitTable()
        self._ends = EndOffsetTable()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._task: asyncio.Task[None] | None = None
        self._has_read = threading.Event()
        self.problems: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._has_read.wait(60)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._follows:
            assert self._task is not None
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(30)

    def _run(self) -> None:
        self._task = self._loop.create_task(self._read())
        self._loop.run_until_complete(asyncio.gather(self._task, return_exceptions=True))
        self._loop.close()

    async def _read(self) -> None:
        async with OffsetLog(self._settings, on_error=self.problems.append) as log:
            assert await log.open()
            await log.read_to_open_end(decode_past, self._take)
            self._has_read.set()
            if self._follows:
                await log.follow(decode_live, self._take)

    async def _take(self, changes: list[Changes], _: int) -> None:
        for change in changes:
            if change.past:
                apply_past(self._table, change.batch.commits)
            else:
                apply_live(self._table, change.batch.commits, self._ends)

    def committed(self, groups: list[str]) -> Committed:
        """Return what the groups have committed by what was read."""
        return {
            (group, partition.partition): offset
            for group in groups
            for partition, offset in zip(*self._table.last(group)[:2], strict=True)
        }


class History:
    """A cluster's groups and producers, each step drawn, and what counts after it."""

    def __init__(self, cluster: EmbeddedCluster, admin: AdminClient, seed: int) -> None:
        self._cluster, self._admin, self._drawn = cluster, admin, random.Random(seed)
        self.groups = [f"history-{seed}-{name}" for name in "abc"]
        self._ids = [f"history-{seed}-{number}" for number in range(2)]
        self._producers: dict[str, Producer] = {}
        #: What counts, and what open transactions would commit: each with its place in the log.
        self._stored: dict[tuple[str, int], tuple[int, int]] = {}
        self._pending: dict[str, dict[tuple[str, int], tuple[int, int]]] = {}
        self._place = 0
        self.said: list[str] = []

    def expected(self) -> Committed:
        return {key: offset for key, (_, offset) in self._stored.items()}

    def asked(self) -> Committed:
        """Ask the coordinator."""
        found: Committed = {}
        for group in self.groups:
            asked = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
            for answered in asked.values():
                for one in answered.result(30).topic_partitions:
                    assert one.error is None
                    found[group, one.partition] = one.offset
        return found

    def step(self) -> None:
        steps = [self._commit, self._commit, self._send, self._send, self._send, self._delete]
        if self._pending:
            steps += [partial(self._end, committed=done) for done in (True, True, False)]
            steps += [self._fence]
        self._drawn.choice(steps)()

    def finish(self) -> None:
        """Leave no transaction open: its time-out would end it, and others wait for its partition."""
        for name in list(self._pending):
            self._producers[name].abort_transaction(30)

    def _draw(self) -> tuple[str, int, int]:
        self._place += 1
        group, partition = self._drawn.choice(self.groups), self._drawn.randrange(PARTITIONS)
        return group, partition, self._drawn.randrange(1_000)

    def _commit(self) -> None:
        group, partition, offset = self._draw()
        self.said.append(f"{group} commits {offset} of {partition}")
        offsets = [TopicPartition(TOPIC, partition, offset)]
        altered = self._admin.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, offsets)]
        )
        for future in altered.values():
            future.result(30)
        self._stored[group, partition] = self._place, offset

    def _send(self) -> None:
        group, partition, offset = self._draw()
        name = self._drawn.choice(self._ids)
        self.said.append(f"{name} sends {offset} of {partition} for {group}")
        if name not in self._producers:
            config = {**self._cluster.client_config(), "transactional.id": name}
            self._producers[name] = Producer(config)
            self._producers[name].init_transactions(30)
        producer = self._producers[name]
        if name not in self._pending:
            producer.begin_transaction()
        metadata = Consumer({"group.id": group}).consumer_group_metadata()
        offsets = [TopicPartition(TOPIC, partition, offset)]
        producer.send_offsets_to_transaction(offsets, metadata, 30)
        self._pending.setdefault(name, {})[group, partition] = self._place, offset

    def _end(self, *, committed: bool) -> None:
        name = self._drawn.choice(sorted(self._pending))
        self.said.append(f"{name} {'commits' if committed else 'aborts'}")
        producer = self._producers[name]
        if committed:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
        for key, sent in self._pending.pop(name).items():
            if committed and sent > self._stored.get(key, (0, 0)):
                self._stored[key] = sent

    def _fence(self) -> None:
        """Another producer of the same id: the coordinator aborts what the old one left open."""
        name = self._drawn.choice(sorted(self._pending))
        self.said.append(f"{name} is fenced")
        config = {**self._cluster.client_config(), "transactional.id": name}
        self._producers[name] = Producer(config)
        self._producers[name].init_transactions(30)
        del self._pending[name]

    def _delete(self) -> None:
        """Delete all that a group has, its pending commits included."""
        group = self._drawn.choice(self.groups)
        if not any(name == group for name, _ in self._stored):
            return
        self.said.append(f"{group} is deleted")
        for future in self._admin.delete_consumer_groups([group]).values():
            future.result(30)
        for kept in (self._stored, *self._pending.values()):
            for key in [key for key in kept if key[0] == group]:
                del kept[key]


def test_after_each_step_it_has_what_offset_fetch_says(brokers: EmbeddedCluster) -> None:
    admin = AdminClient(brokers.client_config())
    with Following(brokers) as following:
        for seed in range(HISTORIES):
            history = History(brokers, admin, seed)
            for _ in range(STEPS):
                history.step()
                expected, where = history.expected(), f"seed {seed}: {history.said}"
                # Markers of a transaction are written after its producer was told.
                wait_for(f"the coordinator, {where}", lambda h=history, e=expected: h.asked() == e)
                wait_for(
                    f"what was read, {where}",
                    lambda h=history, e=expected: following.committed(h.groups) == e,
                )
            with Following(brokers, follows=False) as started:
                assert started.committed(history.groups) == history.expected(), f"seed {seed}"
            history.finish()
        assert following.problems == []
