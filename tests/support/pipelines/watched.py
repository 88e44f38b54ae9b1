"""A topic of a real cluster, its end offsets as the service publishes them, and its history."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, IsolationLevel, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, OffsetSpec
from pyspark.sql import SparkSession

from caughtup.agents.kafka.log_ranges import LogRangeReader
from caughtup.agents.settings import Settings
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.offsets import EndOffsets
from caughtup.models.polls.batch import decode_batch
from caughtup.models.wire.consumer_offsets import OffsetCommit, OffsetKey
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines.history.stream import HistoryOptions, history
from caughtup.pipelines.tables import LAG, QUARANTINE, Table
from tests.support.kafka.transactions import wait_markers
from tests.support.own_topics.end_offsets import end_offsets_record
from tests.support.pipelines.delta import in_ms, rows_of
from tests.support.service import commit

Row = dict[str, Any]


class Watched:
    """A topic, its published end offsets, and a history of both."""

    def __init__(
        self, cluster: EmbeddedCluster, topic: str, end_offsets: str, spark: SparkSession, at: Path
    ) -> None:
        self._cluster = cluster
        self.client = {**cluster.client_config(), "log_level": 0}
        self.topic = topic
        self.group = f"group-{uuid.uuid4().hex[:8]}"
        self.spark = spark
        self.end_offsets = end_offsets
        self.ends: dict[int, EndOffsets] = {}
        self.options = HistoryOptions(
            cluster.bootstrap_servers,
            str(at / "table"),
            str(at / "checkpoint"),
            trigger_seconds=None,
            topics={"end_offsets": end_offsets},
            read=LogRangeReader(Settings(bootstrap_servers=cluster.bootstrap_servers)),
        )

    def produce(self, partition: int, count: int) -> None:
        self._send([(self.topic, partition, None, b"value")] * count)

    def commit(self, partition: int, offset: int) -> None:
        commit(self._cluster, self.group, self.topic, offset, partition=partition)

    def commit_in_transaction(self, partition: int, offset: int, *, abort: bool) -> None:
        producer = Producer({**self.client, "transactional.id": uuid.uuid4().hex})
        consumer = Consumer({**self.client, "group.id": self.group})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(self.topic, b"transactional", partition=partition)
        producer.send_offsets_to_transaction(
            [Position(self.topic, partition, offset)], consumer.consumer_group_metadata(), 30
        )
        producer.flush(30)  # aborting drops what was not sent yet
        if abort:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
        consumer.close()
        wait_markers(self._cluster, Position(self.topic, partition))

    def publish_end_offsets(self) -> None:
        """List the end offsets and publish them as the service does."""
        records = []
        for partition in (0, 1):
            start, stable, end = (
                self._offset(partition, spec, isolation)
                for spec, isolation in (
                    (OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED),
                    (OffsetSpec.latest(), IsolationLevel.READ_COMMITTED),
                    (OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED),
                )
            )
            ends = EndOffsets(start, stable, end, time.time_ns() // 1_000_000)
            self.ends[partition] = ends
            records.append((self.end_offsets, 0, *end_offsets_record(self.topic, partition, ends)))
        self._send(records)

    def publish_garbage(self) -> None:
        self._send([(self.end_offsets, 0, b"garbage", b"{not json")])

    def delete_group(self) -> None:
        admin = AdminClient(self.client)
        admin.delete_consumer_groups([self.group])[self.group].result(30)

    def run(self) -> list[Row]:
        """Run the job to the present ends; return the group's lag rows in the order of events."""
        history(self.spark, self.options, lambda: False)
        return [row for row in self.rows(LAG, "as_of", "partition") if row["group"] == self.group]

    def rows(self, table: Table, *order: str) -> list[Row]:
        """Return a table's rows, with timestamps in ms as well."""
        times = [f.name for f in table.columns if f.dataType.typeName() == "timestamp"]
        rows = rows_of(self.options.output, table.name)
        for row in rows:
            row.update((f"{name}_ms", in_ms(row[name])) for name in times)
        return sorted(rows, key=lambda row: [row[name] for name in order])

    def quarantined(self) -> list[Row]:
        """Return the quarantined records, in the order of the log."""
        return self.rows(QUARANTINE, "topic", "log_partition", "log_offset")

    def commits(self, isolation: str) -> list[tuple[OffsetKey, OffsetCommit | None]]:
        """Read all of __consumer_offsets directly; return the group's decoded commits."""
        settings = {**self.client, "group.id": "reader", "enable.auto.commit": False}
        consumer = Consumer(
            {**settings, "isolation.level": isolation, "enable.partition.eof": True}
        )
        partitions = consumer.list_topics(CONSUMER_OFFSETS, 30).topics[CONSUMER_OFFSETS].partitions
        consumer.assign([Position(CONSUMER_OFFSETS, partition, 0) for partition in partitions])
        reading, found, deadline = set(partitions), [], time.monotonic() + 60
        while reading:
            assert time.monotonic() < deadline, f"no end of {reading}"
            for message in consumer.consume(1000, timeout=1):
                if message.error() is not None:
                    reading.discard(message.partition())
                    continue
                changes = decode_batch([(message.key(), message.value())]).commits
                found.extend(
                    item for item in changes.by_key().items() if item[0].group == self.group
                )
        consumer.close()
        return found

    def _offset(self, partition: int, spec: OffsetSpec, isolation: IsolationLevel) -> int:
        asked = Position(self.topic, partition)
        admin = AdminClient(self.client)
        return admin.list_offsets({asked: spec}, isolation_level=isolation)[asked].result(30).offset

    def _send(self, records: list[tuple[str, int, bytes | None, bytes]]) -> None:
        producer = Producer(self.client)
        for topic, partition, key, value in records:
            producer.produce(topic, value, key, partition)
        assert producer.flush(30) == 0
