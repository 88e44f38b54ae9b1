"""Plain and transactional commits of groups on one partition: after each step what OffsetFetch says.

Live, and by a reader that starts then, while the log is rolled and compacted all the time, and the
coordinator moves. COMMIT_HISTORIES histories, drawn from seeds from COMMIT_SEED on; with ``make thorough`` on brokers of
other releases, too.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from types import TracebackType
from typing import Any, Self

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from caughtup.agents.kafka.offset_log import OffsetLog
from caughtup.agents.kafka.protocol.client import ClusterProtocol
from caughtup.agents.kafka.protocol.groups import describe_group, once_coordinated
from caughtup.agents.offsets.agent import Changes, decode_live, decode_past
from caughtup.agents.settings import Settings
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.fleet.offset_commits import make_offsets_topic
from caughtup.models import ids
from caughtup.models.commits.applying import apply_live, apply_past
from caughtup.models.commits.table import CommitTable
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.support.releases import broker_classpath
from tests.support.service import wait_for

pytestmark = pytest.mark.heavy

HISTORIES = int(os.environ.get("COMMIT_HISTORIES", "20"))
FIRST_SEED = int(os.environ.get("COMMIT_SEED", "0"))
TOPIC, PARTITIONS, STEPS = "orders", 2, 14
#: By group and partition.
Committed = dict[tuple[str, int], int]


#: None: the release of everything else.
RELEASES = (
    None,
    *(pytest.param(name, marks=pytest.mark.thorough) for name in ("3.9.1", "4.4.0")),
)
_BROKER = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "log.cleaner.backoff.ms": "200",
}
#: A segment is rolled by the first record after this time, and then compacted.
_COMPACTED = {
    "segment.ms": "400",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100",
}
_SHORT_MS = 1_000
_ON_THE_MOVE = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


@pytest.fixture(scope="module", params=RELEASES)
def brokers(request: pytest.FixtureRequest) -> Iterator[EmbeddedCluster]:
    release = request.param
    classpath = "" if release is None else broker_classpath(release)
    with EmbeddedCluster(nodes=2, broker_properties=_BROKER, kafka=classpath) as cluster:
        make_offsets_topic(cluster)
        create_topics(cluster, {TOPIC: PARTITIONS})
        resource = ConfigResource(
            ConfigResource.Type.TOPIC,
            CONSUMER_OFFSETS,
            incremental_configs=[
                ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                for name, value in _COMPACTED.items()
            ],
        )
        admin = AdminClient(cluster.client_config())
        admin.incremental_alter_configs([resource])[resource].result(30)
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


def patiently(ask: Callable[[], Mapping[Any, Future[Any]]]) -> Any:
    """Return the one result, asked for again while the coordinator is on the move."""
    until = time.monotonic() + 60
    while True:
        [future] = ask().values()
        try:
            return future.result(30)
        except KafkaException as error:
            if error.args[0].code() not in _ON_THE_MOVE or time.monotonic() > until:
                raise
            time.sleep(0.1)


class History:
    """A cluster's groups and producers, each step drawn, and what counts after it."""

    def __init__(
        self, cluster: EmbeddedCluster, admin: AdminClient, seed: int, *, old: bool = False
    ) -> None:
        """Draw a history from a seed; ``old``: on a broker with the old group coordinator."""
        self._cluster, self._admin, self._drawn = cluster, admin, random.Random(seed)
        self._old = old
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
            wanted = [ConsumerGroupTopicPartitions(group)]
            answered = patiently(lambda w=wanted: self._admin.list_consumer_group_offsets(w))
            for one in answered.topic_partitions:
                assert one.error is None
                found[group, one.partition] = one.offset
        return found

    def step(self) -> None:
        steps = [self._commit, self._commit, self._send, self._send, self._send, self._delete]
        if self._pending:
            steps += [partial(self._end, committed=done) for done in (True, True, False)]
            steps += [self._fence]
        rare = self._drawn.random()
        if rare < 0.02:
            self._time_out()
        elif rare < 0.05:
            self._move()
        else:
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
        wanted = [ConsumerGroupTopicPartitions(group, offsets)]
        patiently(lambda: self._admin.alter_consumer_group_offsets(wanted))
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

    def _time_out(self) -> None:
        """A producer that stops in a transaction: the coordinator aborts it after its time-out."""
        group, partition, offset = self._draw()
        name = f"short-{self._place}-{self.groups[0]}"
        self.said.append(f"{name} sends {offset} of {partition} for {group}, and times out")
        limits = {"transactional.id": name, "transaction.timeout.ms": _SHORT_MS}
        producer = self._producers[name] = Producer({**self._cluster.client_config(), **limits})
        producer.init_transactions(30)
        producer.begin_transaction()
        metadata = Consumer({"group.id": group}).consumer_group_metadata()
        producer.send_offsets_to_transaction(
            [TopicPartition(TOPIC, partition, offset)], metadata, 30
        )
        time.sleep(_SHORT_MS / 1000 + 0.5)

    def _move(self) -> None:
        """Move the partition of all groups to the other broker, and its coordinator with it."""
        self.said.append("the coordinator moves")
        place = ids.TopicPartition(CONSUMER_OFFSETS, 0)
        asyncio.run(_moved(self._cluster.bootstrap_servers, place))
        self._admin = AdminClient(self._cluster.client_config())

    def _delete(self) -> None:
        """Delete all that a group has, its pending commits included.

        The old coordinator forgets the pending commits of a deleted group, but writes nothing of
        them to the log: when it loads the partition again, it has them after all. Of these, no log
        can tell which counts.
        """
        group = self._drawn.choice(self.groups)
        if self._old and any(name == group for sent in self._pending.values() for name, _ in sent):
            return
        if not any(name == group for name, _ in self._stored):
            return
        self.said.append(f"{group} is deleted")
        patiently(lambda: self._admin.delete_consumer_groups([group]))
        for kept in (self._stored, *self._pending.values()):
            for key in [key for key in kept if key[0] == group]:
                del kept[key]


async def _moved(bootstrap_servers: str, place: ids.TopicPartition) -> None:
    async with ClusterProtocol({"bootstrap_servers": bootstrap_servers}) as protocol:
        [was] = (await protocol.describe_partitions([place])).partitions[place].replicas
        await protocol.alter_reassignments({place: [3 - was]})
        while True:
            at = (await protocol.describe_partitions([place])).partitions[place]
            if at.replicas == (3 - was,) and at.leader == 3 - was:
                break
            await asyncio.sleep(0.05)
        # librdkafka 2.16 crashes if the former coordinator, or one that loads, is asked for offsets:
        # rd_kafka_handle_OffsetFetch, which has no consumer group in an admin client.
        await once_coordinated(lambda: describe_group(protocol.connections, "any"))


@pytest.mark.timeout(3_600)
def test_after_each_step_it_has_what_offset_fetch_says(
    brokers: EmbeddedCluster, request: pytest.FixtureRequest
) -> None:
    old = "3.9.1" in request.node.name
    admin = AdminClient(brokers.client_config())
    with Following(brokers) as following:
        for seed in range(FIRST_SEED, FIRST_SEED + HISTORIES):
            history = History(brokers, admin, seed, old=old)
            for _ in range(STEPS):
                history.step()
                expected, where = history.expected(), f"seed {seed}: {history.said}"
                # Markers of a transaction are written after its producer was told.
                wait_for(f"the coordinator, {where}", lambda h=history, e=expected: h.asked() == e)
                try:
                    wait_for(
                        f"what was read, {where}",
                        lambda h=history, e=expected: following.committed(h.groups) == e,
                    )
                except AssertionError as error:
                    read = following.committed(history.groups)
                    problems = following.problems[-5:]
                    error.add_note(f"read {read} instead of {expected}; problems: {problems}")
                    raise
            with Following(brokers, follows=False) as started:
                assert started.committed(history.groups) == history.expected(), f"seed {seed}"
            history.finish()
        problems = {problem.rpartition(": ")[2] for problem in following.problems}
        assert problems <= {"NotLeaderForPartitionError"}
