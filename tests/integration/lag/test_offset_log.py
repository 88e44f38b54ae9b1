"""The log of commits, as the service's thread reads it from real brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition

from caughtup.agents.kafka.offset_log import POLL_RECORDS, SLICE_MESSAGES, OffsetLog
from caughtup.agents.settings import Settings
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.fleet.offset_commits import (
    TOPIC,
    commit_key,
    commit_value,
    make_offsets_topic,
    offsets_partition,
    write_commits,
)
from caughtup.models.polls.batch import Record
from tests.integration.conftest import MakeCluster
from tests.support.kafka.transactions import commit_in_transaction, transactional, wait_markers
from tests.support.service import commit, wait_for

PARTITIONS = 3
OpenLog = Callable[[], OffsetLog]


@pytest.fixture(scope="module")
def brokers() -> Iterator[EmbeddedCluster]:
    properties = {"offsets.topic.num.partitions": str(PARTITIONS)}
    with EmbeddedCluster(broker_properties=properties) as cluster:
        make_offsets_topic(cluster)
        create_topics(cluster, {TOPIC: 1})
        yield cluster


@pytest.fixture
def open_log(brokers: EmbeddedCluster) -> Iterator[OpenLog]:
    """Opens logs that are closed when the test ends."""
    opened: list[OffsetLog] = []

    def make() -> OffsetLog:
        opened.append(offset_log(brokers))
        assert opened[-1].open() is opened[-1]
        opened[-1].start()
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def offset_log(cluster: EmbeddedCluster) -> OffsetLog:
    return OffsetLog(Settings(bootstrap_servers=cluster.bootstrap_servers))


def read_past(opened: OffsetLog) -> list[Record]:
    """Read what was there at the start."""
    records: list[Record] = []

    def is_read() -> bool:
        polled = opened.poll(0.1)
        assert not polled.errors
        records.extend(zip(polled.keys, polled.values, strict=True))
        return not opened.left_of_start()

    wait_for("the start's log is read", is_read)
    return records


def keys_of(records: list[Record], group: str) -> list[bytes]:
    return [key for key, _ in records if key is not None and group.encode() in key]


def reads_commit(opened: OffsetLog, group: str, offset: int) -> bool:
    """Read what has come, and return whether a group's commit of an offset is among it."""
    polled = opened.poll(1)
    committed = commit_key(group, 0), commit_value(offset, 0)[2:10]
    found = zip(polled.keys, polled.values, strict=True)
    return committed in [(key, value[2:10]) for key, value in found if value is not None]


def transaction(cluster: EmbeddedCluster, group: str) -> Producer:
    """Commit an offset in a transaction that stays open."""
    producer = transactional(cluster)
    commit_in_transaction(producer, group, [TopicPartition(TOPIC, 0, 7)])
    return producer


def opened_if_it_leads(waiting: OffsetLog) -> OffsetLog | None:
    """Open it; a topic that was just made may have no leader yet, for which the reader waits.

    The reader's own client may be what makes it: a client with a group asks for its coordinator.
    """
    try:
        return waiting.open()
    except KafkaException:
        return None


def test_a_log_that_is_not_there_yet_is_opened_once_it_is(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    create_topics(cluster, {TOPIC: 1})
    waiting = offset_log(cluster)
    try:
        assert opened_if_it_leads(waiting) in (None, waiting)
        commit(cluster, "readers", TOPIC, 3)
        wait_for("the topic", lambda: opened_if_it_leads(waiting))
        waiting.start()
        assert keys_of(read_past(waiting), "readers") == [commit_key("readers", 0)]
    finally:
        waiting.close()


def test_every_record_is_read_once_in_polls_of_a_bounded_size(
    brokers: EmbeddedCluster, open_log: OpenLog
) -> None:
    written = write_commits(
        brokers, 3 * POLL_RECORDS, groups=7, partitions=100, offsets_partitions=PARTITIONS
    )
    opened = open_log()
    sizes = []
    records: list[Record] = []
    while left := opened.left_of_start():
        polled = opened.poll(5)
        sizes.append(len(polled.keys))
        records.extend(zip(polled.keys, polled.values, strict=True))
        assert opened.left_of_start() < left
    assert max(sizes) < POLL_RECORDS + SLICE_MESSAGES
    assert len(keys_of(records, "generated-")) == written
    for number in range(7):
        group = f"generated-{number:05d}"
        key = commit_key(group, 3)
        found = [value for at, value in records if at == key and value is not None]
        offsets = [int.from_bytes(value[2:10]) for value in found]
        assert offsets == list(range(1, len(offsets) + 1))


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_at_the_end_is_nothing_left_to_read(
    brokers: EmbeddedCluster, open_log: OpenLog, *, committed: bool
) -> None:
    group = f"ended-{committed}"
    producer = transaction(brokers, group)
    if committed:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)
    wait_markers(brokers)
    opened = open_log()
    found = set(keys_of(read_past(opened), group))  # the client may have said it twice
    assert found == ({commit_key(group, 0)} if committed else set())
    wait_for("its end", lambda: opened.poll(0.1) and not opened.behind())


def test_an_open_transaction_is_the_end_of_the_log(
    brokers: EmbeddedCluster, open_log: OpenLog
) -> None:
    producer = transaction(brokers, "open")
    opened = open_log()
    partition = offsets_partition("open", PARTITIONS)
    try:
        assert "open" not in str(keys_of(read_past(opened), "open"))
        wait_for("its end", lambda: opened.poll(0.1) and not opened.behind())
    finally:
        end = opened.ends_at_start[partition]
        producer.commit_transaction(30)
    seen: list[bytes] = []

    def is_read() -> bool:
        seen.extend(filter(None, opened.poll(0.1).keys))
        return commit_key("open", 0) in seen and not opened.behind()

    wait_for("its commit", is_read)
    assert open_log().ends_at_start[partition] > end


def test_what_comes_later_is_read_as_it_comes(brokers: EmbeddedCluster, open_log: OpenLog) -> None:
    opened = open_log()
    read_past(opened)
    for offset in (1, 2):
        commit(brokers, "later", TOPIC, offset)
        wait_for("the commit", lambda at=offset: reads_commit(opened, "later", at))
    wait_for("the brokers' answers", lambda: opened.poll(0.1) and opened.answered_ms())
    answered = opened.answered_ms()
    assert answered is not None
    assert answered <= time.time() * 1000
    wait_for("later answers", lambda: opened.poll(0.1) and (opened.answered_ms() or 0) > answered)
