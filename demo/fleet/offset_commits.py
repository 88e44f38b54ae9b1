"""Write generated offset commits directly to ``__consumer_offsets`` of an embedded broker.

They have the brokers' format, but there are no such groups: for measurements only.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.assignors.java.strings import coordinator_partition
from caughtup.models.errors import CaughtupError
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

TOPIC = "generated"
#: Only clients with this id may produce to an internal topic.
_CLIENT_ID = "__admin_client"
_TOPIC_ID = bytes(range(16))
_QUEUE_FULL_SECONDS = 0.1
_READY_SECONDS = 60.0


class RawRecord(NamedTuple):
    """A record of ``__consumer_offsets`` with its place in the log, and its timestamp in ms."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def write_commits(
    cluster: EmbeddedCluster,
    count: int,
    *,
    groups: int,
    partitions: int,
    offsets_partitions: int,
    advance: Callable[[int], None] = lambda _: None,
) -> int:
    """Write at least ``count`` commits of these numbers of groups and partitions of each.

    In rounds: each group commits all of its partitions, then the next group. Returns the number of
    commits. ``advance`` is called with the number of each group's commits. Raises CaughtupError
    ``produce_failed``.
    """
    make_offsets_topic(cluster)
    producer = offsets_producer(cluster.bootstrap_servers)
    names = [f"generated-{number:05d}" for number in range(groups)]
    keys = {name: [commit_key(name, p) for p in range(partitions)] for name in names}
    homes = {name: coordinator_partition(name, offsets_partitions) for name in names}
    written = offset = 0
    while written < count:
        offset += 1
        value = commit_value(offset, int(time.time() * 1000))
        for name in names:
            for key in keys[name]:
                _produce(producer, key, value, homes[name])
            written += partitions
            advance(partitions)
            if written >= count:
                break
    _flush(producer)
    return written


def write_records(
    cluster: EmbeddedCluster, records: Iterable[RawRecord], *, batch_records: int = 10_000
) -> None:
    """Write records with their timestamps; the broker assigns new offsets.

    Raises CaughtupError ``produce_failed``.
    """
    producer = offsets_producer(cluster.bootstrap_servers, batch_records=batch_records)
    for one in records:
        produce_record(producer, one)
    _flush(producer)


def offsets_producer(
    bootstrap_servers: str, linger_ms: int = 50, batch_records: int = 10_000
) -> Producer:
    """Return a producer that may write to ``__consumer_offsets``."""
    return Producer(
        {
            "bootstrap.servers": bootstrap_servers,
            "client.id": _CLIENT_ID,
            "linger.ms": linger_ms,
            "queue.buffering.max.messages": 1_000_000,
            "batch.num.messages": batch_records,
        }
    )


def produce_record(producer: Producer, record: RawRecord) -> None:
    """Produce a record with its timestamp; wait while the producer's queue is full."""
    _produce(producer, record.key, record.value, record.partition, record.timestamp_ms)


def _flush(producer: Producer) -> None:
    if left := producer.flush(120):
        raise CaughtupError("produce_failed", f"{left} generated records were not delivered")


def make_offsets_topic(cluster: EmbeddedCluster) -> None:
    """Have the brokers create ``__consumer_offsets``, and wait until it is ready."""
    consumer = Consumer({**cluster.client_config(), "group.id": TOPIC})
    deadline = time.monotonic() + _READY_SECONDS
    try:
        while True:
            try:
                consumer.committed([TopicPartition(TOPIC, 0)], timeout=10)
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_QUEUE_FULL_SECONDS)
            else:
                return
    finally:
        consumer.close()


def commit_key(group: str, partition: int, topic: str = TOPIC) -> bytes:
    """Encode an OffsetCommitKey, type 1."""
    return commit_key_prefix(group, topic) + struct.pack(">i", partition)


def commit_key_prefix(group: str, topic: str) -> bytes:
    """Encode an OffsetCommitKey, type 1, without its last four bytes, the partition."""
    names = b"".join(
        struct.pack(">h", len(name)) + name for name in map(str.encode, (group, topic))
    )
    return struct.pack(">h", 1) + names


def commit_value(offset: int, commit_timestamp_ms: int) -> bytes:
    """Encode an OffsetCommitValue, version 4, with a topic id and without metadata."""
    head = struct.pack(">hqiB", 4, offset, 0, 1)
    tags = bytes((1, 0, len(_TOPIC_ID))) + _TOPIC_ID  # one field, number 0
    return head + struct.pack(">q", commit_timestamp_ms) + tags


def _produce(
    producer: Producer,
    key: bytes | None,
    value: bytes | None,
    partition: int,
    timestamp_ms: int = 0,
) -> None:
    """Produce a record; a timestamp of 0 is now."""
    while True:
        try:
            producer.produce(
                CONSUMER_OFFSETS, value, key, partition=partition, timestamp=timestamp_ms
            )
        except BufferError:  # librdkafka's queue is full: deliver some, then try again
            producer.poll(_QUEUE_FULL_SECONDS)
        else:
            return
