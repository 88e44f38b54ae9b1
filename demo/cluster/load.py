"""Produce records to an embedded cluster, at full speed or at a rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, Message, Producer

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.errors import CaughtupError

_BATCH = 1_000
_QUEUE_FULL_SECONDS = 0.1
_FLUSH_SECONDS = 60
_EMPTY_FLUSH_SECONDS = 300
_ENDLESS = 1 << 62


def produce(
    cluster: EmbeddedCluster,
    topic: str,
    count: int,
    *,
    keys: int = 1_000,
    value_bytes: int = 100,
    records_per_second: float | None = None,
    stop: threading.Event | None = None,
) -> int:
    """Produce ``count`` records and return how many were delivered, all unless ``stop`` was set.

    Record n has the key ``key-K``, K being n modulo ``keys``, and a value of ``value_bytes``
    bytes that starts with n: the same call produces the same records. Raises CaughtupError
    ``produce_failed`` when a record is not delivered.
    """
    stop = stop or threading.Event()
    failures: list[KafkaError] = []
    delivered = 0

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        nonlocal delivered
        if error is None:
            delivered += 1
        else:
            failures.append(error)

    quiet = {"log_level": 2}  # a failure is raised; and a demo's end may kill the brokers first
    producer = Producer({**cluster.client_config(), "acks": "all", "linger.ms": 20, **quiet})
    started = time.monotonic()
    for number in range(count):
        if records_per_second is not None:
            due = started + number / records_per_second
            # Below 10 ms sleeping is pointless: the records come in small bursts.
            while (ahead := due - time.monotonic()) > 0.01 and not stop.wait(min(ahead, 1.0)):
                producer.poll(0)
        if stop.is_set() or failures:
            break
        _produce(producer, topic, number, keys, value_bytes, on_delivery)
        if number % _BATCH == 0:
            producer.poll(0)
    undelivered = producer.flush(_FLUSH_SECONDS)
    if failures or undelivered:
        reason = failures[0].str() if failures else f"{undelivered} records were not delivered"
        raise CaughtupError("produce_failed", f"cannot produce to {topic}: {reason}")
    return delivered


@contextmanager
def producing(
    cluster: EmbeddedCluster, topic: str, records_per_second: float, *, keys: int = 1_000
) -> Iterator[None]:
    """Produce like ``produce`` inside the context. Raises CaughtupError ``produce_failed``."""
    stop = threading.Event()
    failed: list[CaughtupError] = []

    def run() -> None:
        try:
            produce(
                cluster,
                topic,
                _ENDLESS,
                keys=keys,
                records_per_second=records_per_second,
                stop=stop,
            )
        except CaughtupError as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if failed:
        raise failed[0]


def produce_empty(
    cluster: EmbeddedCluster, partitions: Iterable[tuple[str, int]], count: int
) -> None:
    """Produce ``count`` empty records to each of the partitions, to advance their offsets.

    Raises CaughtupError ``produce_failed``.
    """
    producer = Producer({**cluster.client_config(), "queue.buffering.max.messages": 1_000_000})
    for topic, partition in partitions:
        for _ in range(count):
            producer.produce(topic, b"", partition=partition)
    if left := producer.flush(_EMPTY_FLUSH_SECONDS):
        raise CaughtupError("produce_failed", f"{left} records were not delivered")


def _produce(
    producer: Producer,
    topic: str,
    number: int,
    keys: int,
    value_bytes: int,
    on_delivery: Callable[[KafkaError | None, Message], None],
) -> None:
    key = f"key-{number % keys}"
    value = str(number).ljust(value_bytes, ".")[:value_bytes]
    while True:
        try:
            producer.produce(topic, value, key, on_delivery=on_delivery)
        except BufferError:
            # librdkafka's queue is full: deliver some, then try the same record again.
            producer.poll(_QUEUE_FULL_SECONDS)
        else:
            return
