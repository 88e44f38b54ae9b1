"""Generated offset commits, written straight to ``__consumer_offsets`` of an embedded broker.

They are shaped as the brokers write them, but no group ever made them: for measurements only.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.errors import CaughtupError
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

TOPIC = "generated"
#: Brokers let nobody else produce to an internal topic.
_CLIENT_ID = "__admin_client"
_TOPIC_ID = bytes(range(16))
_QUEUE_FULL_SECONDS = 0.1
_READY_SECONDS = 60.0


class RawRecord(NamedTuple):
    """A record of ``__consumer_offsets``, where it stands in the log, its timestamp in ms."""

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
    """Write ``count`` commits or a few more, of so many groups to each of so many partitions.

    In rounds: each group commits all of its partitions, then the next. Returns how many were
    written. ``advance`` is called with the number of each group's. Raises CaughtupError
    ``produce_failed``.
    """
    make_offsets_topic(cluster)
    producer = offsets_producer(cluster.bootstrap_servers)
    names = [f"generated-{number:05d}" for number in range(groups)]
    keys = {name: [commit_key(name, p) for p in range(partitions)] for name in names}
    homes = {name: offsets_partition(name, offsets_partitions) for name in names}
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
    """Write records as they are, with their timestamps; the brokers number them themselves.

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
    """Produce a record with its timestamp, as soon as there is room for it."""
    _produce(producer, record.key, record.value, record.partition, record.timestamp_ms)


def _flush(producer: Producer) -> None:
    if left := producer.flush(120):
        raise CaughtupError("produce_failed", f"{left} generated records were not delivered")


def make_offsets_topic(cluster: EmbeddedCluster) -> None:
    """Ask about a group until the brokers have made ``__consumer_offsets``."""
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


def offsets_partition(group: str, partitions: int) -> int:
    """Return the partition that a group is kept on, from Java's hash of its name (ASCII).

    Source: Utils.abs, which makes Java's least integer 0.
    """
    code = 0
    for character in group:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    if code >= 1 << 31:
        code = (1 << 32) - code if code > 1 << 31 else 0
    return code % partitions


def commit_key(group: str, partition: int, topic: str = TOPIC) -> bytes:
    """Write an OffsetCommitKey, type 1."""
    return commit_key_prefix(group, topic) + struct.pack(">i", partition)


def commit_key_prefix(group: str, topic: str) -> bytes:
    """Write an OffsetCommitKey, type 1, up to its partition, which are the last four bytes."""
    names = b"".join(
        struct.pack(">h", len(name)) + name for name in map(str.encode, (group, topic))
    )
    return struct.pack(">h", 1) + names


def commit_value(offset: int, commit_timestamp_ms: int) -> bytes:
    """Write an OffsetCommitValue, version 4, with a topic id and without metadata."""
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
