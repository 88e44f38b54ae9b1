"""Ranges of real logs, as Spark's tasks read them: with the brokers' offsets and timestamps."""

from __future__ import annotations

import pickle
import time

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from caughtup.agents.kafka import log_ranges
from caughtup.agents.kafka.log_ranges import LogRangeReader
from caughtup.agents.settings import Settings
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import read_topic
from caughtup.models import ids
from caughtup.models.polls.pending_commits import PendingCommits
from caughtup.models.polls.record_batches import LogRange
from tests.integration.conftest import MakeTopic

Row = tuple[int, int, bytes | None, bytes | None]


def rows_of(cluster: EmbeddedCluster, topic: str, start: int, until: int) -> list[Row]:
    """Read a range as another process would: the reader is pickled."""
    reader = LogRangeReader(Settings(bootstrap_servers=cluster.bootstrap_servers))
    wanted = LogRange(ids.TopicPartition(topic, 0), start, until)
    found: list[Row] = []
    for _, one in pickle.loads(pickle.dumps(reader))([(wanted, PendingCommits())]):
        logged = one.logged
        assert logged.time is not None
        columns = (logged.offset.tolist(), logged.time.tolist())
        found += zip(*columns, logged.records.keys(), logged.records.values(), strict=True)
    return found


@pytest.fixture
def topic(cluster: EmbeddedCluster, make_topic: MakeTopic) -> str:
    """A topic with 3,000 records, compressed by turns."""
    name = make_topic()
    for codec in ("none", "gzip", "lz4"):
        producer = Producer({**cluster.client_config(), "compression.type": codec})
        for number in range(1_000):
            producer.produce(name, b"%d" % number, b"key" if number % 3 else None)
        assert producer.flush(30) == 0
    return name


def test_each_record_of_a_range_is_read_with_its_place_and_time(
    cluster: EmbeddedCluster, topic: str
) -> None:
    expected = [tuple(record) for record in read_topic(cluster, topic)]
    assert rows_of(cluster, topic, 0, 3_000) == expected
    assert rows_of(cluster, topic, 1_234, 1_300) == expected[1_234:1_300], "within a batch"
    assert rows_of(cluster, topic, 5, 5) == []


def test_a_range_that_is_partly_deleted_is_read_from_the_log_s_start(
    cluster: EmbeddedCluster, topic: str
) -> None:
    partition = TopicPartition(topic, 0, 2_500)
    admin = AdminClient(cluster.client_config())
    admin.delete_records([partition])[partition].result(30)
    assert [row[0] for row in rows_of(cluster, topic, 100, 2_600)] == list(range(2_500, 2_600))


def test_a_range_beyond_a_log_s_end_and_a_deleted_topic_end_with_what_there_is(
    cluster: EmbeddedCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_ranges, "_PATIENCE_SECONDS", 2.0)
    monkeypatch.setattr(log_ranges, "_GONE_SECONDS", 1.0)
    assert len(rows_of(cluster, topic, 2_990, 3_050)) == 10
    admin = AdminClient(cluster.client_config())
    admin.delete_topics([topic])[topic].result(30)
    until = time.monotonic() + 30
    while topic in admin.list_topics(timeout=30).topics and time.monotonic() < until:
        time.sleep(0.1)
    assert rows_of(cluster, topic, 0, 10) == []
