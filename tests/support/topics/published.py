"""What a real run published on own topics, read back and held to their schemas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from confluent_kafka import Consumer, KafkaError, TopicPartition

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.records.topics import DEFAULT_PREFIX, with_prefix
from tests.support.topics.validation import kinds_of, problems

Record = tuple[bytes | None, bytes | None]

_SECONDS = 30.0


def require_valid(
    cluster: EmbeddedCluster, topics: Iterable[str], prefix: str = DEFAULT_PREFIX
) -> set[str]:
    """Require every record that is on topics now to be valid; return their structs' names."""
    kinds: set[str] = set()
    for topic in topics:
        records = list(read_records(cluster, with_prefix(topic, prefix)))
        found = [problem for record in records for problem in problems(topic, *record)]
        assert not found, f"{len(found)} of {len(records)} records: {found[:5]}"
        kinds |= kinds_of(topic, (key for key, value in records if value is not None))
    return kinds


def read_records(cluster: EmbeddedCluster, topic: str) -> Iterator[Record]:
    """Read the keys and values that a topic of one partition holds now."""
    config = {**cluster.client_config(), "group.id": "reads-only", "enable.partition.eof": True}
    consumer = Consumer(config)
    try:
        partition = TopicPartition(topic, 0, 0)
        _, end = consumer.get_watermark_offsets(partition, timeout=_SECONDS)
        consumer.assign([partition])
        offset = -1
        while offset < end - 1:
            message = consumer.poll(_SECONDS)
            assert message is not None, f"{topic} isn't read to its end at {end}"
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                return
            offset = message.offset()
            yield message.key(), message.value()
    finally:
        consumer.close()
