"""Real queries of Spark as groups: their lag is Kafka's end less what their checkpoint says."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.pipelines.history.stream import HistoryOptions, history
from caughtup.pipelines.java.jars import ensure_spark_jars
from caughtup.pipelines.rates.stream import RatesOptions, start_catch_up_rates
from caughtup.pipelines.spark.kafka_options import source_options
from caughtup.pipelines.spark.session import spark_session
from tests.integration.conftest import MakeTopic
from tests.support.pipelines.delta import rows_of
from tests.support.service import Service, caughtup, wait_for

#: Spark's first batch takes long on a busy machine.
SECONDS = 180.0
GROUP = "spark:team/readings"
QUERY = "spark_query"

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("spark"), pytest.mark.thorough]
Committed = dict[tuple[str, int], int]
Start = Callable[..., StreamingQuery]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = spark_session("caughtup query lag test", master="local[2]", jars=ensure_spark_jars())
    session.conf.set("spark.sql.shuffle.partitions", "2")
    yield session
    session.stop()


@pytest.fixture
def topics(make_topic: MakeTopic) -> tuple[str, str]:
    return make_topic("readings", partitions=3), make_topic("alarms")


@pytest.fixture
def start(spark: SparkSession, cluster: EmbeddedCluster, topics: tuple[str, str]) -> Start:
    """Starts a query that reads two topics of Kafka and a source that isn't Kafka's."""

    def start(checkpoint: Path, each: Callable[[DataFrame, int], None]) -> StreamingQuery:
        def source(topic: str) -> DataFrame:
            options = source_options(cluster.bootstrap_servers, {})
            reader = spark.readStream.format("kafka").options(**options, subscribe=topic)
            return reader.option("startingOffsets", "earliest").load().select("value")

        ticks = (
            spark.readStream.format("rate")
            .load()
            .selectExpr("CAST(CAST(value AS STRING) AS BINARY) AS value")
        )
        records = source(topics[0]).union(ticks).union(source(topics[1]))
        writer = records.writeStream.option("checkpointLocation", f"file://{checkpoint}")
        return writer.trigger(processingTime="0.5 seconds").foreachBatch(each).start()

    return start


def take(batch: DataFrame, _: int) -> None:
    batch.count()


def in_checkpoint(checkpoint: Path) -> Committed:
    """Read what the last batch that is committed ended at, in a way of the test's own."""
    last = max(int(one.name) for one in (checkpoint / "commits").iterdir() if one.name.isdigit())
    found: Committed = {}
    for line in (checkpoint / f"offsets/{last}").read_text().splitlines()[2:]:
        read = json.loads(line) if line.startswith('{"') else {}
        for topic, partitions in read.items():
            found.update({(topic, int(number)): offset for number, offset in partitions.items()})
    return found


def lags(cluster: EmbeddedCluster, committed: Committed) -> Committed:
    """Return Kafka's end of each partition less what was committed."""
    asked = {TopicPartition(*one): OffsetSpec.latest() for one in committed}
    admin = AdminClient(cluster.client_config())
    ends = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED)
    return {
        (one.topic, one.partition): end.result().offset - committed[one.topic, one.partition]
        for one, end in ends.items()
    }


def in_kafka(cluster: EmbeddedCluster) -> Committed:
    """Return what was committed to Kafka under the query's group."""
    admin = AdminClient(cluster.client_config())
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(GROUP)])
    found = asked[GROUP].result().topic_partitions
    return {(one.topic, one.partition): one.offset for one in found}


def in_history(
    spark: SparkSession, cluster: EmbeddedCluster, service: Service, at: Path
) -> tuple[Committed, Committed]:
    """Write a history, and return what it has of the query: its last commits, and its last lag."""
    ends = {"end_offsets": f"{service.application_id}-end-offsets"}
    tables, servers = f"{at}/tables", cluster.bootstrap_servers
    options = HistoryOptions(servers, tables, f"{at}/checkpoint", trigger_seconds=None, topics=ends)
    history(spark, options, lambda: False)
    found: list[Committed] = []
    for table, time, column in (("commits", "log_offset", "committed"), ("lag", "as_of", "lag")):
        rows = [row for row in rows_of(tables, table) if row["group"] == GROUP]
        rows.sort(key=itemgetter(time, "committed"))
        found.append({(row["topic"], row["partition"]): row[column] for row in rows})
    return found[0], found[1]


def of_metrics(service: Service, group: str = GROUP) -> Committed:
    return {
        (sample.labels["topic"], int(sample.labels["partition"])): int(sample.value)
        for sample in service.metrics()
        if sample.name == "caughtup_group_lag_records" and sample.labels["group"] == group
    }


def of_command(
    directory: Path,
    *arguments: str | Path,
    group: str = GROUP,
    environment: Mapping[str, str] | None = None,
) -> Committed:
    more = ("--format", "json")
    ran = caughtup("lag", *arguments, group, *more, directory=directory, environment=environment)
    lines = ran.lines
    assert {line["group_type"] for line in lines} == {"spark"}
    return {(line["topic"], line["partition"]): line["lag"] for line in lines}


def test_a_querys_lag_is_kafkas_end_less_its_checkpoint(
    cluster: EmbeddedCluster,
    spark: SparkSession,
    topics: tuple[str, str],
    start: Start,
    tmp_path: Path,
) -> None:
    produce(cluster, topics[0], 300)
    produce(cluster, topics[1], 50)
    checkpoint = tmp_path / "checkpoints/team/readings"
    watched = Service(
        cluster,
        spark_checkpoints=[f"{tmp_path}/checkpoints"],
        spark_checkpoints_interval=1,
        spark_checkpoints_commit=True,
    )

    def equal() -> Committed | None:
        """Return the lags if service and Kafka agree on them."""
        truth = lags(cluster, in_checkpoint(checkpoint)) if total(checkpoint) else {}
        return truth if of_metrics(watched) == truth else None

    query = start(checkpoint, take)
    try:
        wait_for("the records to be read", lambda: total(checkpoint) == 350, SECONDS)
    finally:
        query.stop()
    produce(cluster, topics[0], 40)
    with watched as service:
        found = wait_for("the service to agree", equal)
        assert (len(found), sum(found.values())) == (4, 40)
        assert of_command(tmp_path, "--config", service.settings_file) == found
        assert of_command(tmp_path, "--service", service.url) == found
        (row,) = (one for one in service.page()["groups"] if one["group"] == GROUP)
        assert (row["group_type"], row["lag"]) == ("spark", 40)
        assert row["batch"] == max(
            int(one.name) for one in (checkpoint / "commits").iterdir() if one.name.isdigit()
        )
        last_ms = 1000 * (service.value(f"{QUERY}_last_batch_timestamp_seconds", group=GROUP) or 0)
        assert abs(last_ms - row["batch_ms"]) < 1

        wait_for("Kafka to have it", lambda: in_kafka(cluster) == in_checkpoint(checkpoint))
        committed, lag = in_history(spark, cluster, service, tmp_path / "history")
        assert (committed, lag) == (in_checkpoint(checkpoint), found)

        def refuse(batch: DataFrame, number: int) -> None:
            batch.count()
            raise ValueError("the disk is full")

        query = start(checkpoint, refuse)
        with pytest.raises(StreamingQueryException):
            query.awaitTermination(int(SECONDS))
        name = f"{QUERY}_batch_started_timestamp_seconds"
        wait_for("the batch in flight", lambda: service.value(name, group=GROUP))
        assert sum(of_metrics(service).values()) == 40  # its records are yet to be read

        query = start(checkpoint, take)
        try:
            wait_for("nothing to be left", lambda: sum((equal() or {"": 1}).values()) == 0, SECONDS)
        finally:
            query.stop()
        service.stop()
        produce(cluster, topics[1], 7)
        service.start()
        wait_for("seven after the restart", lambda: sum((equal() or {"": 0}).values()) == 7)

        shutil.rmtree(checkpoint)
        wait_for("the group to go", lambda: not of_metrics(service))
        wait_for("it to go from Kafka", lambda: not in_kafka(cluster))
        query = start(checkpoint, take)
        try:
            wait_for("all of it again", lambda: sum((equal() or {"": 1}).values()) == 0, SECONDS)
        finally:
            query.stop()


def total(checkpoint: Path) -> int:
    if not any(one.name.isdigit() for one in (checkpoint / "commits").glob("*")):
        return 0
    return sum(in_checkpoint(checkpoint).values())


def test_our_own_stream_is_a_group_like_any_other(
    cluster: EmbeddedCluster, spark: SparkSession, make_topic: MakeTopic, tmp_path: Path
) -> None:
    checkpoint, topics = tmp_path / "rates", [make_topic(partitions=2) for _ in range(4)]
    options = RatesOptions(cluster.bootstrap_servers, f"file://{checkpoint}", 1, *topics, once=True)
    produce(cluster, topics[0], 20)  # records that it passes over
    query = start_catch_up_rates(spark, options)
    assert query.awaitTermination(int(SECONDS))
    produce(cluster, topics[1], 5)
    found = of_command(
        tmp_path,
        *("-b", cluster.bootstrap_servers),
        environment={"CAUGHTUP_SPARK_CHECKPOINTS": f"ours={checkpoint}"},
        group="spark:ours",
    )
    assert found == lags(cluster, in_checkpoint(checkpoint))
    assert sum(found.values()) == 5
