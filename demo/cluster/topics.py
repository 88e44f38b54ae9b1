"""Create topics on an embedded cluster, and read their records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.errors import CaughtupError

_SECONDS = 60


def create_topics(
    cluster: EmbeddedCluster,
    partitions: Mapping[str, int],
    config: Mapping[str, str] | None = None,
    replicas: int = -1,
) -> None:
    """Create topics with these numbers of partitions, and wait until all brokers know them.

    ``replicas`` of -1 means the brokers' default: the number of nodes, at most 3. Raises
    CaughtupError ``topic_failed``.
    """
    admin = AdminClient(cluster.client_config())
    topics = [
        NewTopic(name, count, replicas, config=dict(config or {}))
        for name, count in sorted(partitions.items())
    ]
    for name, created in admin.create_topics(topics).items():
        try:
            created.result(_SECONDS)
        except KafkaException as problem:
            raise CaughtupError(
                "topic_failed", f"cannot create topic {name}: {problem.args[0].str()}"
            ) from problem


_POLL_SECONDS = 1.0
_END_SECONDS = 30.0


class LoggedRecord(NamedTuple):
    """A record with its offset and its timestamp in ms."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def read_topic(cluster: EmbeddedCluster, topic: str) -> Iterator[LoggedRecord]:
    """Yield every record of a topic, read_committed, and perhaps some later ones.

    A partition's records come in their order. Reading stops at the end offsets as of the call: under
    load a partition's end may never be reached. If the log ends with a transaction marker, the
    reader stops at PARTITION_EOF.
    """
    consumer = Consumer(
        {
            **cluster.client_config(),
            "group.id": "caughtup-demo",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    try:
        partitions = consumer.list_topics(topic).topics[topic].partitions
        consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
        ends = {
            p: consumer.get_watermark_offsets(TopicPartition(topic, p), _END_SECONDS)[1]
            for p in partitions
        }
        unfinished = set(partitions)
        while unfinished:
            for message in consumer.consume(1_000, _POLL_SECONDS):
                error = message.error()
                if error is None:
                    offset, partition = message.offset(), message.partition()
                    assert offset is not None
                    assert partition is not None
                    yield LoggedRecord(
                        offset, message.timestamp()[1], message.key(), message.value()
                    )
                    if offset + 1 >= ends[partition]:
                        unfinished.discard(partition)
                elif error.code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(message.partition())
    finally:
        consumer.close()
