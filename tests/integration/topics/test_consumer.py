"""Own topics as a thread reads them: made anew under the same name, held, and gone."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from caughtup.agents.settings import Settings
from caughtup.agents.topics.consumer import ConsumerRecord, StandaloneConsumer
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.kafka.transactions import transactional
from tests.support.service import wait_for


@pytest.fixture
def consumer(cluster: EmbeddedCluster) -> Iterator[StandaloneConsumer]:
    consumer = StandaloneConsumer(Settings(bootstrap_servers=cluster.bootstrap_servers))
    yield consumer
    consumer.close()


@pytest.fixture
def topic(cluster: EmbeddedCluster) -> str:
    name = f"own-{uuid.uuid4().hex[:8]}"
    make(cluster, name)
    return name


def make(cluster: EmbeddedCluster, topic: str) -> None:
    admin = AdminClient(cluster.client_config())
    config = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topics([NewTopic(topic, 1, config=config)])[topic].result(30)


def write(cluster: EmbeddedCluster, topic: str, *values: str) -> None:
    producer = Producer({**cluster.client_config(), "allow.auto.create.topics": False})
    for value in values:
        producer.produce(topic, value.encode(), key=b"k")
    assert producer.flush(30) == 0


def open_known(consumer: StandaloneConsumer, topics: dict[str, bool]) -> None:
    """Open topics as soon as the broker that is asked has heard of them."""
    wait_for("they are known", lambda: consumer.open(topics) == {})


def read(consumer: StandaloneConsumer, topic: str, count: int) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []

    def enough() -> bool:
        found.extend(consumer.poll(0.1).records.get(topic, []))
        return len(found) >= count

    wait_for(f"{count} records", enough)
    return found


def values(consumer: StandaloneConsumer, topic: str, count: int) -> list[bytes | None]:
    return [record.value for record in read(consumer, topic, count)]


def test_a_topic_is_read_from_its_start_and_then_on(
    cluster: EmbeddedCluster, consumer: StandaloneConsumer, topic: str
) -> None:
    write(cluster, topic, "a", "b")
    open_known(consumer, {topic: False})
    assert consumer.unread == {(topic, 0)}
    first, _ = read(consumer, topic, 2)
    assert (first.key, first.value, first.by_broker) == (b"k", b"a", True)
    wait_for("all is read", lambda: consumer.poll(0.1) and not consumer.unread)
    write(cluster, topic, "c")
    assert values(consumer, topic, 1) == [b"c"]


def test_or_from_its_end(
    cluster: EmbeddedCluster, consumer: StandaloneConsumer, topic: str
) -> None:
    write(cluster, topic, "a", "b")
    open_known(consumer, {topic: True})
    assert consumer.unread == set()
    write(cluster, topic, "c")
    assert values(consumer, topic, 1) == [b"c"]


def test_one_that_was_made_anew_is_read_whole_once_it_is_opened_again(
    cluster: EmbeddedCluster, consumer: StandaloneConsumer, topic: str
) -> None:
    """A client that goes on by its offset skips as many records as it has read before."""
    write(cluster, topic, "a", "b")
    open_known(consumer, {topic: False})
    assert values(consumer, topic, 2) == [b"a", b"b"]
    admin = AdminClient(cluster.client_config())
    admin.delete_topics([topic])[topic].result(30)
    make(cluster, topic)
    write(cluster, topic, "c", "d", "e")
    open_known(consumer, {topic: False})
    assert values(consumer, topic, 3)[-3:] == [b"c", b"d", b"e"]


def test_one_that_a_broker_has_not_heard_of_is_asked_for_again_and_keeps_no_other_waiting(
    cluster: EmbeddedCluster, consumer: StandaloneConsumer, topic: str
) -> None:
    """As at the start, and where a topic was made anew: one broker knows of it before another."""
    made = f"{topic}-made"
    write(cluster, topic, "a")
    failed = consumer.open({topic: False, made: False})
    assert {name: error.code() for name, error in failed.items()} == {
        made: KafkaError.UNKNOWN_TOPIC_OR_PART
    }
    assert values(consumer, topic, 1) == [b"a"]
    make(cluster, made)
    write(cluster, made, "b")
    open_known(consumer, {made: False})
    assert values(consumer, made, 1) == [b"b"]


def test_one_of_which_nothing_comes_is_read_by_another_client(
    cluster: EmbeddedCluster, topic: str
) -> None:
    """As librdkafka's may be after a topic was deleted and made anew: silent, and for good."""
    now = 100.0
    settings = Settings(bootstrap_servers=cluster.bootstrap_servers)
    stuck = StandaloneConsumer(settings, lambda: now)
    try:
        write(cluster, topic, "a")
        open_known(stuck, {topic: False})
        client = stuck._consumer
        client.pause([TopicPartition(topic, 0)])
        assert stuck.poll(1).records == {}
        now += 4
        assert stuck.poll(0.5).records == {}
        assert stuck._consumer is client
        now += 2
        stuck.poll(0.5)
        assert stuck._consumer is not client
        assert values(stuck, topic, 1) == [b"a"]
        wait_for("its end", lambda: stuck.poll(0.1) and not stuck.unread)
        client = stuck._consumer
        now += 1_000  # nothing more is to come
        stuck.poll(0.5)
        assert stuck._consumer is client
    finally:
        stuck.close()


def test_one_that_is_held_waits_and_the_others_go_on(
    cluster: EmbeddedCluster, consumer: StandaloneConsumer, topic: str
) -> None:
    held = f"{topic}-held"
    make(cluster, held)
    write(cluster, held, "a")
    open_known(consumer, {topic: False, held: False})
    assert values(consumer, held, 1) == [b"a"]
    consumer.hold([held])
    write(cluster, held, "b")
    write(cluster, topic, "c")
    while True:
        records = consumer.poll(1).records
        assert held not in records
        if topic in records:
            break
    consumer.hold([])
    assert values(consumer, held, 1) == [b"b"]


@pytest.mark.parametrize("committed", [False, True])
def test_an_open_transaction_of_somebody_holds_back_nothing_of_own_topics(
    cluster: EmbeddedCluster, topic: str, committed: bool
) -> None:
    producer = transactional(cluster)
    producer.begin_transaction()
    producer.produce(topic, b"open", b"k")
    producer.flush(30)
    write(cluster, topic, "plain")
    settings = Settings(bootstrap_servers=cluster.bootstrap_servers)
    consumer = StandaloneConsumer(settings, committed=committed)
    try:
        open_known(consumer, {topic: False})
        if committed:
            assert not consumer.poll(1.0).records
            producer.abort_transaction(30)
            assert [record.value for record in read(consumer, topic, 1)] == [b"plain"]
        else:
            values = [record.value for record in read(consumer, topic, 2)]
            assert values == [b"open", b"plain"]
            assert consumer.unread == set()
    finally:
        consumer.close()
