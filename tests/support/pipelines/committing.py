"""A few groups that commit continuously during a test, and their commits in the log."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from typing import Self

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.errors import DecodeError
from caughtup.models.wire.consumer_offsets import OffsetKey, decode_key
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.support.own_topics.end_offsets import end_offsets_record

GROUPS = 5
_PAUSE_SECONDS = 0.01
#: One in this many rounds commits in a transaction that is aborted.
_ABORTED_ROUND = 7


class Committing:
    """Groups that commit to a topic, and samples of its end, until the context is left."""

    def __init__(self, cluster: EmbeddedCluster, topic: str, end_offsets: str) -> None:
        self.prefix = f"killed-{uuid.uuid4().hex[:8]}"
        self._client = {**cluster.client_config(), "log_level": 0}
        self._topic, self._end_offsets = topic, end_offsets
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._commit, daemon=True)
        self.rounds = 0

    def __enter__(self) -> Self:
        self._write_ends(Producer(self._client)).flush(60)  # no lag is known before the first one
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop committing."""
        self._stop.set()
        self._thread.join()

    def _commit(self) -> None:
        groups = [f"{self.prefix}-{number}" for number in range(GROUPS)]
        consumers = [
            Consumer({**self._client, "group.id": group, "enable.auto.commit": False})
            for group in groups
        ]
        producer = Producer({**self._client, "transactional.id": self.prefix})
        producer.init_transactions(60)
        end_offsets = Producer(self._client)
        while not self._stop.wait(_PAUSE_SECONDS):
            self.rounds += 1
            position = Position(self._topic, 0, self.rounds)
            if self.rounds % _ABORTED_ROUND == 0:
                producer.begin_transaction()
                metadata = consumers[0].consumer_group_metadata()
                producer.send_offsets_to_transaction([position], metadata, 60)
                producer.abort_transaction(60)
            else:
                for consumer in consumers:
                    consumer.commit(offsets=[position], asynchronous=False)
            self._write_ends(end_offsets).poll(0)
        end_offsets.flush(60)
        for consumer in consumers:
            consumer.close()

    def _write_ends(self, producer: Producer) -> Producer:
        at_ms = time.time_ns() // 1_000_000
        key, value = end_offsets_record(self._topic, 0, self.rounds * 2, at_ms)
        producer.produce(self._end_offsets, value, key)
        return producer

    def committed(self) -> list[tuple[int, int]]:
        """Return the place in the log of each commit, without aborted ones."""
        return sorted(
            (partition, offset)
            for partition, offset, key in self._read(CONSUMER_OFFSETS)
            if key is not None and self._is_ours(key)
        )

    def end_offsets(self) -> list[tuple[int, int]]:
        """Return the place of each sample on its topic."""
        return sorted((partition, offset) for partition, offset, _ in self._read(self._end_offsets))

    def _is_ours(self, key: bytes) -> bool:
        try:
            found = decode_key(key)
        except DecodeError:
            return False
        return isinstance(found, OffsetKey) and found.group.startswith(self.prefix)

    def _read(self, topic: str) -> Iterator[tuple[int, int, bytes | None]]:
        settings = {**self._client, "group.id": "reader", "enable.partition.eof": True}
        consumer = Consumer({**settings, "enable.auto.commit": False})
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        consumer.assign([Position(topic, partition, 0) for partition in partitions])
        reading, deadline = set(partitions), time.monotonic() + 120
        while reading:
            assert time.monotonic() < deadline, f"no end of {reading}"
            for message in consumer.consume(1000, timeout=1):
                if message.error() is not None:
                    reading.discard(message.partition())
                else:
                    yield message.partition(), message.offset(), message.key()
        consumer.close()
