"""Real streams on a real Spark tell of themselves, and the service, beside them, says so."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way to import it)
from pyspark.sql.streaming.query import StreamingQuery

from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.load import produce
from caughtup.models.errors import CaughtupError
from caughtup.models.records.pipeline_progress import FORMAT, ProgressRecord
from caughtup.pipelines.java.jars import ensure_spark_jars
from caughtup.pipelines.progress import Reporter, report_progress
from caughtup.pipelines.spark.kafka_options import source_options
from caughtup.pipelines.spark.session import spark_session
from tests.integration.conftest import MakeTopic
from tests.support.kafka.topics import whole_topic
from tests.support.service import Service, wait_for

#: Spark's first batch takes long on a busy machine.
SECONDS = 180.0
TRIGGER_SECONDS = 0.5

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("spark"), pytest.mark.thorough]
Batch = Callable[[DataFrame, int], None]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = spark_session("caughtup progress test", master="local[2]", jars=ensure_spark_jars())
    session.conf.set("spark.sql.shuffle.partitions", "2")
    # Else a stream without records is said to be idle after ten seconds.
    session.conf.set("spark.sql.streaming.noDataProgressEventInterval", "1000")
    yield session
    session.stop()


@pytest.fixture
def options(cluster: EmbeddedCluster) -> dict[str, str]:
    return source_options(cluster.bootstrap_servers, {})


@pytest.fixture
def read(cluster: EmbeddedCluster) -> Callable[[str], list[ProgressRecord]]:
    """Reads all that a topic of progress holds, in its order."""

    def read(topic: str) -> list[ProgressRecord]:
        messages = whole_topic(cluster, topic)
        assert {message.key() for message in messages} <= {b"readings"}
        return [FORMAT.decode(message.value() or b"") for message in messages]

    return read


def start(
    spark: SparkSession, options: dict[str, str], topic: str, checkpoint: Path, batch: Batch
) -> StreamingQuery:
    """Start a stream with state, a watermark and a count of what can't be decoded."""
    records = spark.readStream.format("kafka").options(**options, subscribe=topic)
    return (
        records.option("startingOffsets", "earliest")
        .load()
        .withWatermark("timestamp", "1 minute")
        .observe("decoded", F.count_if(F.col("value") == b"broken").alias("quarantined"))
        .dropDuplicates(["value"])
        .writeStream.queryName("readings")
        .option("checkpointLocation", str(checkpoint))
        .trigger(processingTime=f"{TRIGGER_SECONDS} seconds")
        .foreachBatch(batch)
        .start()
    )


def process_twice(batch: DataFrame, number: int) -> None:
    """Process each batch but the first twice, as a job may: its records are still read once."""
    for _ in range(min(1 + number, 2)):
        batch.count()


def refuse(batch: DataFrame, number: int) -> None:
    batch.count()
    raise ValueError("the disk is full")


def test_each_batch_is_told_and_that_the_stream_was_stopped(
    spark: SparkSession,
    cluster: EmbeddedCluster,
    options: dict[str, str],
    make_topic: MakeTopic,
    read: Callable[[str], list[ProgressRecord]],
    tmp_path: Path,
) -> None:
    readings, progress = make_topic("readings", partitions=2), make_topic("progress")
    produce(cluster, readings, 50)
    with report_progress(spark, options, progress, TRIGGER_SECONDS):
        query = start(spark, options, readings, tmp_path / "checkpoint", process_twice)
        try:
            wait_for("a batch", lambda: any(one.rows == 50 for one in read(progress)), SECONDS)
            producer = Producer(cluster.client_config())
            for value in (b"broken", b"broken", b"whole"):
                producer.produce(readings, value)
            assert producer.flush(30) == 0
            wait_for("more", lambda: any(one.quarantined == 2 for one in read(progress)), SECONDS)
            wait_for("idleness", lambda: read(progress)[-1].rows == 0, SECONDS)
        finally:
            query.stop()
    reports = read(progress)
    assert reports[0] == ProgressRecord(FORMAT.schema, "running", TRIGGER_SECONDS)
    first = next(one for one in reports if one.rows)
    assert (first.batch, first.rows, first.offsets_behind) == (0, 50, 0)
    assert first.state_rows == 50
    assert first.quarantined == 0
    assert first.batch_seconds is not None
    assert first.batch_seconds > 0
    assert first.rows_per_second is not None
    assert first.rows_per_second > 0
    assert sum(one.rows for one in unique(reports)) == 53
    assert any(one.watermark_ms for one in reports)
    assert {one.state for one in reports[:-1]} == {"running"}
    assert (reports[-1].state, reports[-1].why, reports[-1].quarantined) == ("stopped", None, 2)


def unique(reports: list[ProgressRecord]) -> list[ProgressRecord]:
    """Return each batch's first report."""
    return list({one.batch: one for one in reversed(reports) if one.rows}.values())


def test_a_stream_that_fails_says_why_in_one_line(
    spark: SparkSession,
    cluster: EmbeddedCluster,
    options: dict[str, str],
    make_topic: MakeTopic,
    read: Callable[[str], list[ProgressRecord]],
    tmp_path: Path,
) -> None:
    readings, progress = make_topic("readings"), make_topic("progress")
    produce(cluster, readings, 5)
    with (
        pytest.raises(StreamingQueryException),
        report_progress(spark, options, progress, TRIGGER_SECONDS),
    ):
        start(spark, options, readings, tmp_path / "checkpoint", refuse).awaitTermination(SECONDS)
    reports = read(progress)[-1]
    assert reports.state == "failed"
    assert reports.why is not None
    assert "the disk is full" in reports.why
    assert "\n" not in reports.why


def test_a_stream_goes_on_where_its_progress_can_not_be_written(
    spark: SparkSession,
    cluster: EmbeddedCluster,
    options: dict[str, str],
    make_topic: MakeTopic,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    readings = make_topic("readings")
    produce(cluster, readings, 5)
    batches: list[int] = []

    def count(batch: DataFrame, number: int) -> None:
        batches.append(batch.count())

    with (
        caplog.at_level(logging.WARNING, "caughtup"),
        report_progress(spark, options, "no-such-topic", TRIGGER_SECONDS),
    ):
        query = start(spark, options, readings, tmp_path / "checkpoint", count)
        try:
            wait_for("a batch", lambda: sum(batches) == 5, SECONDS)
            assert query.isActive
        finally:
            query.stop()
    (said,) = (record.getMessage() for record in caplog.records)
    assert said == (
        "writing to no-such-topic: there is no such topic; `caughtup run` creates it;"
        " the stream itself continues"
    )


def test_the_service_says_how_a_stream_gets_on(
    spark: SparkSession,
    cluster: EmbeddedCluster,
    options: dict[str, str],
    make_topic: MakeTopic,
    tmp_path: Path,
) -> None:
    readings = make_topic("readings")
    produce(cluster, readings, 50)
    with Service(cluster) as service:

        def row() -> dict[str, Any]:
            return next(iter(service.page()["streams"]), {})

        def run() -> None:
            topic = service.topic("pipeline-progress")
            with report_progress(spark, options, topic, 600.0) as reporter:
                query = start(spark, options, readings, tmp_path / "checkpoint", process_twice)
                try:
                    watch(reporter)
                finally:
                    query.stop()
                raise CaughtupError("no_space", "out of space")

        def watch(reporter: Reporter) -> None:
            wait_for("a batch on the page", lambda: row().get("batch") is not None, SECONDS)
            assert row()["status"] == "running"
            service.wait_value(1, "pipeline_status", stream="readings", status="running")
            service.wait_value(0, "pipeline_offsets_behind", stream="readings")
            service.wait_value(50, "pipeline_state_rows", stream="readings")
            service.wait_value(0, "pipeline_quarantined_total", stream="readings")
            reporter.note(quarantined=7, state_rows=8)

        with pytest.raises(CaughtupError):
            run()
        service.wait_value(7, "pipeline_quarantined_total", stream="readings")
        service.wait_value(8, "pipeline_state_rows", stream="readings")
        service.wait_value(1, "pipeline_status", stream="readings", status="failed")
        service.wait_value(0, "pipeline_status", stream="readings", status="running")
        assert (row()["status"], row()["why"]) == ("failed", "out of space")
