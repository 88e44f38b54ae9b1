"""Topics of a real cluster: one that a group has read, and reading without a group."""

from __future__ import annotations

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.topics import create_topics
from caughtup.models.polls.batch import Record
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.support.service import commit

_SECONDS = 30.0
#: The errors for a topic that was just created or recreated.
_NO_LEADER = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)


def words_read(
    cluster: EmbeddedCluster, records: int, committed: int, group: str = "readers"
) -> dict[str, object]:
    """Make a topic of ``records`` records and a group's commit on it; return the metrics' labels."""
    create_topics(cluster, {"words": 1})
    produce(cluster, "words", records)
    commit(cluster, group, "words", committed)
    return {"group": group, "topic": "words", "partition": 0}


def write_offsets(cluster: EmbeddedCluster, partition: int, *records: Record) -> None:
    """Write raw records to a partition of ``__consumer_offsets``."""
    # Brokers let no other client id produce to an internal topic.
    producer = Producer({**cluster.client_config(), "client.id": "__admin_client"})
    for key, value in records:
        producer.produce(CONSUMER_OFFSETS, value, key, partition=partition)
    assert producer.flush(30) == 0


def read_topic(
    cluster: EmbeddedCluster,
    topic: str,
    properties: dict[str, object] | None = None,
    partition: int = 0,
) -> Consumer:
    """Read a partition of a topic, by default its only one, from its beginning."""
    group = {"group.id": "reads-only", "enable.auto.commit": False}
    consumer = Consumer({**cluster.client_config(), **group, **(properties or {})})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    return consumer


def whole_topic(cluster: EmbeddedCluster, topic: str, partition: int = 0) -> list[Message]:
    """Return all records of a partition, by default the only one, that are not removed yet."""
    consumer = read_topic(cluster, topic, {"enable.partition.eof": True}, partition)
    found: list[Message] = []
    try:
        while True:
            message = consumer.poll(_SECONDS)
            assert message is not None, f"the end of {topic} was not reached in {_SECONDS:.0f} s"
            error = message.error()
            if error is None:
                found.append(message)
                continue
            assert error.code() == KafkaError._PARTITION_EOF, error
            return found
    finally:
        consumer.close()


def log_end(cluster: EmbeddedCluster, topic: str, partition: int = 0) -> int:
    """Return the log end offset of a partition; 0 while it has no leader."""
    consumer = Consumer({**cluster.client_config(), "group.id": "reads-only"})
    try:
        place = TopicPartition(topic, partition)
        end: int = consumer.get_watermark_offsets(place, timeout=10)[1]
        return end
    except KafkaException as error:
        if error.args[0].code() in _NO_LEADER:
            return 0
        raise
    finally:
        consumer.close()
