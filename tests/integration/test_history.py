"""The lag history of a real cluster, written by a real Spark."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, IsolationLevel, Producer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, OffsetSpec
from pyspark.sql import SparkSession

from caughtup.demo.cluster import EmbeddedCluster
from caughtup.demo.jars import ensure_spark_jars
from caughtup.models.errors import CaughtupError
from caughtup.models.lag import EndOffsets, partition_lag
from caughtup.models.wire.batch import decode_batch
from caughtup.models.wire.consumer_offsets import OffsetCommit, OffsetKey
from caughtup.pipelines.history import History, HistoryOptions, history
from caughtup.pipelines.schema import OFFSETS_TOPIC, bucket
from caughtup.pipelines.session import spark_session
from caughtup.pipelines.tables import LAG
from tests.integration.conftest import MakeTopic

Row = dict[str, Any]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = spark_session("caughtup history test", jars=ensure_spark_jars())
    yield session
    session.stop()


class Watched:
    """A topic of the cluster, its end offsets as they are published, and a history of both."""

    def __init__(
        self, cluster: EmbeddedCluster, topic: str, end_offsets: str, spark: SparkSession, at: Path
    ) -> None:
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
        )

    def produce(self, partition: int, count: int) -> None:
        self._send([(self.topic, partition, None, b"value")] * count)

    def commit(self, partition: int, offset: int) -> None:
        consumer = Consumer({**self.client, "group.id": self.group, "enable.auto.commit": False})
        consumer.commit(offsets=[Position(self.topic, partition, offset)], asynchronous=False)
        consumer.close()

    def commit_in_transaction(self, partition: int, offset: int, *, abort: bool) -> None:
        producer = Producer({**self.client, "transactional.id": uuid.uuid4().hex})
        consumer = Consumer({**self.client, "group.id": self.group})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(self.topic, b"transactional", partition=partition)
        producer.send_offsets_to_transaction(
            [Position(self.topic, partition, offset)], consumer.consumer_group_metadata(), 30
        )
        if abort:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
        consumer.close()

    def publish_end_offsets(self) -> None:
        """Ask the cluster for the end offsets and publish them as the service does."""
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
            value = {
                "schema": 1,
                "topic": self.topic,
                "partition": partition,
                "start_offset": ends.start_offset,
                "last_stable_offset": ends.last_stable_offset,
                "end_offset": ends.end_offset,
                "as_of_ms": ends.as_of_ms,
            }
            key = f"{self.topic}-{partition}".encode()
            records.append((self.end_offsets, 0, key, json.dumps(value).encode()))
        self._send(records)

    def publish_garbage(self) -> None:
        self._send([(self.end_offsets, 0, b"garbage", b"{not json")])

    def delete_group(self) -> None:
        admin = AdminClient(self.client)
        admin.delete_consumer_groups([self.group])[self.group].result(30)

    def run(self) -> list[Row]:
        """Take what there is, and give the table's rows of the group in the order they happened."""
        history(self.spark, self.options, lambda: False)
        path = Path(self.options.output, "lag")
        if not path.exists():
            return []
        table = self.spark.read.schema(LAG.stored).parquet(str(path))
        rows = table.where(table["group"] == self.group).selectExpr(
            "*", "unix_millis(as_of) AS as_of_ms", "unix_millis(commit_timestamp) AS committed_ms"
        )
        return [row.asDict() for row in rows.orderBy("as_of", "partition").collect()]

    def commits(self, isolation: str) -> list[tuple[OffsetKey, OffsetCommit | None]]:
        """Read all of __consumer_offsets directly; give the group's commits, each decoded."""
        settings = {**self.client, "group.id": "reader", "enable.auto.commit": False}
        consumer = Consumer(
            {**settings, "isolation.level": isolation, "enable.partition.eof": True}
        )
        partitions = consumer.list_topics(OFFSETS_TOPIC, 30).topics[OFFSETS_TOPIC].partitions
        consumer.assign([Position(OFFSETS_TOPIC, partition, 0) for partition in partitions])
        reading, found, deadline = set(partitions), [], time.monotonic() + 60
        while reading:
            assert time.monotonic() < deadline, f"no end of {reading}"
            for message in consumer.consume(1000, timeout=1):
                if message.error() is not None:
                    reading.discard(message.partition())
                    continue
                changes = decode_batch([(message.key(), message.value())]).commits
                found.extend(item for item in changes.items() if item[0].group == self.group)
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


@pytest.fixture
def watched(
    cluster: EmbeddedCluster, make_topic: MakeTopic, spark: SparkSession, tmp_path: Path
) -> Watched:
    end_offsets = make_topic("end-offsets", config={"cleanup.policy": "compact"})
    return Watched(cluster, make_topic("orders", partitions=2), end_offsets, spark, tmp_path)


def facts(rows: list[Row]) -> list[tuple[Any, ...]]:
    names = ("partition", "committed", "lag", "lag_committed_view", "source")
    return [tuple(row[name] for name in names) for row in rows]


def test_the_table_says_what_the_models_say_of_the_same_records(watched: Watched) -> None:
    watched.produce(0, 30)
    watched.produce(1, 10)
    watched.commit(0, 4)
    assert watched.run() == [], "lag without end offsets"

    watched.publish_end_offsets()
    first = watched.run()
    assert facts(first) == [(0, 4, 26, 26, "end_offset")]

    watched.commit(0, 7)
    watched.commit(0, 9)
    watched.commit_in_transaction(0, 25, abort=True)
    watched.commit_in_transaction(1, 3, abort=False)
    watched.publish_garbage()
    watched.publish_end_offsets()
    rows = watched.run()

    assert rows[:1] == first, "what was written stays"
    assert 25 in [value.offset for _, value in watched.commits("read_uncommitted") if value]
    assert 25 not in [row["committed"] for row in rows]
    assert {(row["partition"], row["committed"]) for row in rows} == {
        (0, 4),
        (0, 7),
        (0, 9),
        (1, 3),
    }
    last: dict[int, Row] = {row["partition"]: row for row in rows}
    expected = {key.partition: value for key, value in watched.commits("read_committed")}
    assert sorted(expected) == sorted(last) == [0, 1]
    for partition, commit in expected.items():
        row, ends = last[partition], watched.ends[partition]
        assert commit is not None
        lag = partition_lag(commit.offset, ends, commit.commit_timestamp_ms)
        assert (row["committed"], row["committed_ms"]) == (
            commit.offset,
            commit.commit_timestamp_ms,
        )
        assert (row["lag"], row["lag_committed_view"]) == (lag.lag, lag.lag_committed_view)
        assert row["has_commit"] == lag.has_commit
        assert row["as_of_ms"] == max(ends.as_of_ms, commit.commit_timestamp_ms)
        assert (
            EndOffsets(
                row["start_offset"], row["last_stable_offset"], row["end_offset"], ends.as_of_ms
            )
            == ends
        )
    # The aborted transaction's record and marker, then the committed one's.
    assert last[0]["end_offset"] == 32
    assert last[1]["end_offset"] == 12


def test_a_deleted_group_ends_with_a_row_without_a_commit(watched: Watched) -> None:
    watched.produce(0, 30)
    watched.publish_end_offsets()
    watched.commit(0, 12)
    assert facts(watched.run()) == [(0, 12, 18, 18, "commit")]
    watched.delete_group()
    watched.produce(0, 5)
    watched.publish_end_offsets()
    rows = watched.run()
    assert [row["has_commit"] for row in rows] == [True, False]
    assert (rows[-1]["committed"], rows[-1]["commit_timestamp"]) == (None, None)
    assert rows[-1]["lag"] == 30


def test_a_group_is_in_one_part_of_a_day_and_a_trigger_makes_one_file_of_it(
    watched: Watched,
) -> None:
    watched.produce(0, 30)
    watched.produce(1, 30)
    watched.publish_end_offsets()
    watched.commit(0, 1)
    watched.commit(1, 2)
    (day,) = {row["date"] for row in watched.run()}
    folder = Path(
        watched.options.output, "lag", f"date={day}", f"group_bucket={bucket(watched.group)}"
    )
    assert len(list(folder.glob("*.parquet"))) == 1
    table = watched.spark.read.parquet(str(folder))
    assert table.where(table["group"] == watched.group).count() == 2


def test_what_cannot_be_decoded_is_counted_and_shown(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.publish_garbage()
    watched.publish_garbage()
    watched.run()
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("2 records can't be decoded or are gone, such as ")
    assert watched.end_offsets in line


def test_a_topic_that_is_not_there_yet_is_said_and_not_created(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    topic = f"absent-{uuid.uuid4().hex[:8]}"
    watched.commit(0, 1)
    watched.options = replace(watched.options, topics={"end_offsets": topic})
    assert watched.run() == []
    assert f"there is no topic {topic} yet" in caplog.text
    assert topic not in AdminClient(watched.client).list_topics(timeout=30).topics


class Refused(NamedTuple):
    """Options that can't work, and what the error has to say."""

    change: Callable[[HistoryOptions, Path], HistoryOptions]
    code: str
    words: str


@pytest.mark.parametrize(
    "refused",
    [
        Refused(lambda o, file: replace(o, output=str(file / "x")), "output_unwritable", "/x: "),
        Refused(lambda o, _: replace(o, output="nowhere://x/y"), "output_unwritable", "nowhere"),
        Refused(lambda o, file: replace(o, checkpoint=str(file)), "output_unwritable", "plain"),
        Refused(
            lambda o, _: replace(o, bootstrap_servers="127.0.0.1:1"),
            "kafka_unreachable",
            "no answer from 127.0.0.1:1: ",
        ),
        Refused(
            lambda o, _: replace(o, kafka={"auto.offset.reset": "latest"}),
            "bad_kafka_property",
            "auto.offset.reset",
        ),
        Refused(
            lambda o, _: replace(o, kafka={"security.protocol": "nonsense"}),
            "kafka_unreachable",
            "security.protocol",
        ),
    ],
    ids=lambda refused: f"{refused.code} {refused.words}",
)
def test_what_cannot_work_is_refused_in_one_line(
    watched: Watched, tmp_path: Path, refused: Refused
) -> None:
    file = tmp_path / "plain"
    file.write_text("a file, where a directory is needed")
    with pytest.raises(CaughtupError) as caught:
        History(watched.spark, refused.change(watched.options, file))
    assert caught.value.code == refused.code
    assert refused.words in caught.value.message
    assert len(caught.value.message.splitlines()) == 1
    assert watched.spark.streams.active == []
