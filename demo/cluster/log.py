"""Reads what a topic of an embedded cluster holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from caughtup.demo.cluster.cluster import EmbeddedCluster

_POLL_SECONDS = 1.0
_END_SECONDS = 30.0


class LoggedRecord(NamedTuple):
    """A record, with its offset and its time in ms, as the log has them."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def read_topic(cluster: EmbeddedCluster, topic: str) -> Iterator[LoggedRecord]:
    """Return every record that a topic holds now, read_committed, and maybe some later ones.

    A partition's records come in their order. Ended by the offsets that there are now: under load
    there may be no moment without another record to come, and no end to be told of. Where the log
    ends with a marker, it is told.
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
