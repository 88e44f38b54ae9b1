"""The log of commits, as it is fetched from real brokers, beside what librdkafka reads of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

import pytest
from aiokafka.errors import KafkaError, LeaderNotAvailableError, NotLeaderForPartitionError
from confluent_kafka import Producer, TopicPartition

from caughtup.agents.clock import now_ms
from caughtup.agents.kafka.offset_log import OffsetLog
from caughtup.agents.settings import Settings
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics, read_topic
from caughtup.demo.fleet.offset_commits import (
    TOPIC,
    commit_key,
    commit_value,
    make_offsets_topic,
    offsets_producer,
)
from caughtup.demo.fleet.offset_logs import Shape, write_log
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.polls.records import FramedRecords
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.integration.conftest import MakeCluster
from tests.support.kafka.transactions import commit_in_transaction, transactional, wait_markers
from tests.support.service import commit

PARTITIONS = 3
_PATIENCE_SECONDS = 30
#: By key, since keys of one partition only have an order.
Values = dict[bytes | None, list[bytes | None]]


@pytest.fixture(scope="module")
def brokers() -> Iterator[EmbeddedCluster]:
    properties = {"offsets.topic.num.partitions": str(PARTITIONS)}
    with EmbeddedCluster(broker_properties=properties, nodes=2) as cluster:
        make_offsets_topic(cluster)
        create_topics(cluster, {TOPIC: 1})
        yield cluster


class Reading:
    """What an opened log has brought so far."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.problems: list[str] = []
        settings = Settings(bootstrap_servers=cluster.bootstrap_servers)
        self.log = OffsetLog(settings, on_error=self.problems.append)
        self.values: Values = {}
        self.records = 0

    def add(self, records: FramedRecords) -> int:
        for key, value in zip(records.keys(), records.values(), strict=True):
            self.values.setdefault(key, []).append(value)
        return len(records)

    async def take(self, changes: int, count: int) -> None:
        assert changes == count
        self.records += count

    async def read_to_open_end(self) -> None:
        assert await self.log.open()
        await self.log.read_to_open_end(self.add, self.take)
        assert self.log.unread_at_open() == 0

    async def follow_until(self, reached: Callable[[], bool]) -> None:
        """Read what comes until a condition holds."""
        following = asyncio.ensure_future(self.log.follow(self.add, self.take))
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                while not reached():
                    await asyncio.wait((following,), timeout=0.05)
                    assert not following.done()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    def offsets(self, group: str) -> list[int]:
        values = self.values.get(commit_key(group, 0), [])
        return [int.from_bytes(value[2:10]) for value in values if value is not None]

    def names(self, *groups: str) -> set[str]:
        return {name for name in groups if self.offsets(name)}


def run(cluster: EmbeddedCluster, read: Callable[[Reading], Awaitable[object]]) -> Reading:
    """Open a log, read it, and return what it brought."""
    reading = Reading(cluster)

    async def work() -> None:
        async with reading.log:
            await read(reading)

    asyncio.run(work())
    return reading


def read_by_library(cluster: EmbeddedCluster) -> Values:
    """Read all committed records with librdkafka."""
    found: Values = {}
    for _, _, key, value in read_topic(cluster, CONSUMER_OFFSETS):
        found.setdefault(key, []).append(value)
    return found


def transaction(cluster: EmbeddedCluster, group: str) -> Producer:
    """Commit an offset in a transaction that stays open."""
    producer = transactional(cluster)
    commit_in_transaction(producer, group, [TopicPartition(TOPIC, 0, 7)])
    return producer


def test_a_log_that_is_not_there_yet_is_opened_once_it_is(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    create_topics(cluster, {TOPIC: 1})

    async def work(reading: Reading) -> None:
        assert not await reading.log.open()
        await asyncio.to_thread(commit, cluster, "readers", TOPIC, 3)
        async with asyncio.timeout(_PATIENCE_SECONDS):
            await open_when_it_leads(reading.log)
        await reading.log.read_to_open_end(reading.add, reading.take)

    assert run(cluster, work).offsets("readers") == [3]


async def open_when_it_leads(log: OffsetLog) -> None:
    """Open it; a topic that was just made may have no leader yet, for which a reader waits."""
    while True:
        with suppress(LeaderNotAvailableError, NotLeaderForPartitionError):
            if await log.open():
                return
        await asyncio.sleep(0.1)


def test_all_that_is_committed_is_fetched(brokers: EmbeddedCluster) -> None:
    write_log(brokers, "compacted", Shape(20_000, 40, 500), offsets_partitions=PARTITIONS)
    for offset in range(5):
        commit(brokers, "plain", TOPIC, offset)
    transaction(brokers, "committed").commit_transaction(30)
    transaction(brokers, "aborted").abort_transaction(30)
    wait_markers(brokers)
    commit(brokers, "after", TOPIC, 1)
    expected = read_by_library(brokers)
    reading = run(brokers, Reading.read_to_open_end)
    assert reading.records == sum(map(len, reading.values.values())) >= 20_000
    assert reading.values == expected
    assert reading.names("plain", "committed", "aborted", "after") == {
        "plain",
        "committed",
        "after",
    }
    assert reading.problems == []


def test_an_open_transaction_holds_back_its_own_commits_and_no_others(
    brokers: EmbeddedCluster,
) -> None:
    commit(brokers, "waiting", TOPIC, 1)
    producer = transaction(brokers, "waiting")
    home = coordinator_partition("waiting", PARTITIONS)
    beside = next(
        name
        for name in (f"beside-{n}" for n in range(1_000))
        if coordinator_partition(name, PARTITIONS) == home
    )

    async def work(reading: Reading) -> None:
        await asyncio.to_thread(commit, brokers, beside, TOPIC, 3)
        await reading.read_to_open_end()
        assert reading.offsets(beside) == [3]
        assert reading.offsets("waiting") == [1]
        await asyncio.to_thread(commit, brokers, beside, TOPIC, 4)
        await reading.follow_until(lambda: reading.offsets(beside) == [3, 4])
        assert reading.offsets("waiting") == [1]
        assert len(reading.log.partitions[home].pending) == 1
        await asyncio.to_thread(producer.commit_transaction, 30)
        await reading.follow_until(lambda: reading.offsets("waiting") == [1, 7])
        await reading.follow_until(lambda: not reading.log.behind())

    run(brokers, work)


def test_what_is_compressed_is_read_like_everything_else(brokers: EmbeddedCluster) -> None:
    home = coordinator_partition("zipped", PARTITIONS)
    plain = offsets_producer(brokers.bootstrap_servers)
    producers = [(plain, "none")]
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        zipped = {**ZIPPED, "compression.type": codec}
        producers.append(
            (Producer({**zipped, "bootstrap.servers": brokers.bootstrap_servers}), codec)
        )
    producers.append((plain, "behind"))
    for producer, name in producers:
        for number in range(50):
            key, value = commit_key(name, 0), commit_value(number, 0)
            producer.produce(CONSUMER_OFFSETS, value, key, partition=home)
        assert producer.flush(30) == 0
    reading = run(brokers, Reading.read_to_open_end)
    for _, name in producers:
        assert reading.offsets(name) == list(range(50)), name


#: A producer that may write to an internal topic.
ZIPPED = {"client.id": "__admin_client", "linger.ms": 200}


def test_what_comes_later_is_read_as_it_comes(brokers: EmbeddedCluster) -> None:
    async def work(reading: Reading) -> None:
        await reading.read_to_open_end()
        for offset in (1, 2):
            await asyncio.to_thread(commit, brokers, "later", TOPIC, offset)
            await reading.follow_until(lambda at=offset: at in reading.offsets("later"))
        answered = reading.log.answered_ms()
        assert answered is not None
        assert answered <= now_ms()
        await reading.follow_until(lambda: (reading.log.answered_ms() or 0) > answered)

    run(brokers, work)


def test_a_bug_of_ours_is_an_error_and_not_an_endless_try(brokers: EmbeddedCluster) -> None:
    commit(brokers, "there", TOPIC, 1)

    async def work(reading: Reading) -> None:
        def broken(records: FramedRecords) -> int:
            raise IndexError(len(records))

        assert await reading.log.open()
        with pytest.raises(IndexError):
            await reading.log.read_to_open_end(broken, reading.take)

    run(brokers, work)


def test_brokers_that_answer_nothing_are_an_error() -> None:
    async def work() -> None:
        async with OffsetLog(Settings(bootstrap_servers="127.0.0.1:1")) as log:
            with pytest.raises(KafkaError):
                await log.open()

    asyncio.run(work())
