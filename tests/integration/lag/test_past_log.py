"""The past of ``__consumer_offsets``: fetched in large answers, it is what a client library reads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence

import pytest
from confluent_kafka import Producer

from caughtup.agents.kafka.offset_log import OffsetLog
from caughtup.agents.kafka.past_log import PastLog
from caughtup.agents.settings import Settings
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.fleet.offset_commits import (
    TOPIC,
    make_offsets_topic,
    offsets_partition,
    offsets_producer,
)
from caughtup.demo.fleet.offset_logs import Shape, write_log
from caughtup.models.polls.records import FramedRecords
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.integration.lag.test_offset_log import read_past, transaction
from tests.support.service import commit

PARTITIONS = 3
#: By key, since keys of one partition only have an order.
Values = dict[bytes | None, list[bytes | None]]


@pytest.fixture(scope="module")
def brokers() -> Iterator[EmbeddedCluster]:
    properties = {"offsets.topic.num.partitions": str(PARTITIONS)}
    with EmbeddedCluster(broker_properties=properties, nodes=2) as cluster:
        make_offsets_topic(cluster)
        create_topics(cluster, {TOPIC: 1})
        yield cluster


def values_of(keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> Values:
    found: Values = {}
    for key, value in zip(keys, values, strict=True):
        found.setdefault(key, []).append(value)
    return found


def opened(cluster: EmbeddedCluster) -> OffsetLog:
    offset_log = OffsetLog(settings(cluster))
    assert offset_log.open() is offset_log
    return offset_log


def settings(cluster: EmbeddedCluster) -> Settings:
    return Settings(bootstrap_servers=cluster.bootstrap_servers)


def read_by_library(cluster: EmbeddedCluster) -> Values:
    offset_log = opened(cluster)
    try:
        offset_log.start()
        return values_of(*zip(*read_past(offset_log), strict=True))
    finally:
        offset_log.close()


def fetch(past: PastLog) -> Values:
    """Read the past by fetching; how many records come is what is said of them."""
    found: Values = {}

    async def take(records: FramedRecords, count: int) -> None:
        assert len(records) == count
        for key, values in values_of(records.keys(), records.values()).items():
            found.setdefault(key, []).extend(values)

    asyncio.run(past.read(lambda records: records, take))
    return found


def test_all_that_a_committed_reader_may_see_is_fetched(brokers: EmbeddedCluster) -> None:
    write_log(brokers, "compacted", Shape(20_000, 40, 500), offsets_partitions=PARTITIONS)
    for offset in range(5):
        commit(brokers, "plain", TOPIC, offset)
    transaction(brokers, "committed").commit_transaction(30)
    transaction(brokers, "aborted").abort_transaction(30)
    commit(brokers, "after", TOPIC, 1)
    under_way = transaction(brokers, "under-way")
    offset_log = opened(brokers)
    try:
        past = PastLog(settings(brokers), offset_log.start_offsets, offset_log.ends_at_start)
        total = past.left()
        found = fetch(past)
        assert past.left() == 0
        assert total >= 20_000
        # Somebody may have made a commit since.
        assert past.positions.keys() == offset_log.ends_at_start.keys()
        assert all(at >= offset_log.ends_at_start[p] for p, at in past.positions.items())
        expected = read_by_library(brokers)
        assert found == expected
        groups = {
            name
            for name in ("plain", "committed", "aborted", "after", "under-way")
            if any(key and name.encode() in key and key[1] == 1 for key in found)
        }
        assert groups == {"plain", "committed", "after"}
    finally:
        offset_log.close()
        under_way.abort_transaction(30)


def test_what_is_compressed_is_left_to_the_library(
    brokers: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    home = offsets_partition("zipped", PARTITIONS)
    zipped = Producer({**ZIPPED, "bootstrap.servers": brokers.bootstrap_servers})
    plain = offsets_producer(brokers.bootstrap_servers)
    for producer, name in ((plain, b"before"), (zipped, b"zipped"), (plain, b"behind")):
        for number in range(50):
            producer.produce(CONSUMER_OFFSETS, name, b"%s-%d" % (name, number), partition=home)
        assert producer.flush(30) == 0
    offset_log = opened(brokers)
    try:
        past = PastLog(settings(brokers), offset_log.start_offsets, offset_log.ends_at_start)
        with caplog.at_level(logging.INFO):
            found = fetch(past)
        assert (
            f"stopped fetching {CONSUMER_OFFSETS}-{home} in large answers: a compressed batch"
            in caplog.text
        )
        assert 100 <= past.left() < 200
        assert b"before-49" in found
        assert b"zipped-0" not in found
        offset_log.start(past.positions)
        for key, value in read_past(offset_log):
            found.setdefault(key, []).append(value)
        assert found == read_by_library(brokers)
        assert {b"zipped-49", b"behind-49"} <= found.keys()
    finally:
        offset_log.close()


#: A producer that may write to an internal topic.
ZIPPED = {"client.id": "__admin_client", "compression.type": "gzip", "linger.ms": 200}


def test_what_fails_in_our_own_hands_is_left_to_the_library(brokers: EmbeddedCluster) -> None:
    offset_log = opened(brokers)
    try:
        past = PastLog(settings(brokers), offset_log.start_offsets, offset_log.ends_at_start)
        total = past.left()

        def broken(records: FramedRecords) -> None:
            raise IndexError(len(records))

        async def take(_: None, __: int) -> None:
            raise AssertionError

        asyncio.run(past.read(broken, take))
        assert past.left() == total > 0
    finally:
        offset_log.close()


def test_brokers_that_answer_nothing_leave_all_to_the_library(
    brokers: EmbeddedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    offset_log = opened(brokers)
    offset_log.close()
    nobody = Settings(bootstrap_servers="127.0.0.1:1")
    past = PastLog(nobody, offset_log.start_offsets, offset_log.ends_at_start)
    total = past.left()
    with caplog.at_level(logging.INFO):
        assert fetch(past) == {}
    assert past.left() == total > 0
    assert "in large answers" in caplog.text
