"""Publish the progress of Spark's streams on caughtup-pipeline-progress."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from caughtup.models.errors import CaughtupError
from caughtup.models.records.fields import changed
from caughtup.models.records.keys import encode_group
from caughtup.models.records.pipeline_progress import FORMAT, ProgressRecord, State
from caughtup.pipelines.spark.session import UNANSWERED, how_jvm_ended, one_line
from caughtup.pipelines.spark.sources import missing_topics

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject, JVMView

#: How long the end of a stream waits for reports of its last batches.
_DRAIN_MS = 10_000
_log = logging.getLogger(__name__)

#: The time-out of a record; the next one has newer figures anyway.
_PATIENCE_MS = 5_000
_PROPERTIES = {
    # Records are sent one at a time without retries, and need only WRITE on the topic.
    "acks": "1",
    "enable.idempotence": "false",
    "max.block.ms": str(_PATIENCE_MS),
    "request.timeout.ms": str(_PATIENCE_MS),
    "delivery.timeout.ms": str(_PATIENCE_MS),
    "linger.ms": "0",
}
_log = logging.getLogger(__name__)


#: What Spark tells of a batch, decoded from JSON.
Json = Mapping[str, Any]


class Reporter(StreamingQueryListener):
    """Listens to a session's streams, and reports each under its query's name.

    Spark calls it from its own thread; a stream waits for it only at its start.
    """

    def __init__(self, topic: ProgressTopic, trigger_seconds: float | None) -> None:
        self._topic = topic
        self._trigger_seconds = trigger_seconds
        self._lock = threading.Lock()
        self._reported: dict[str, ProgressRecord] = {}
        self._names: dict[str, str] = {}
        self._noted: dict[str, int] = {}
        #: The records of batches that Spark's source didn't read, by batch.
        self._rows: dict[int, int] = {}
        self._ended = False

    def note(self, *, quarantined: int | None = None, state_rows: int | None = None) -> None:
        """Set figures for the next reports: records quarantined since the start, rows of state.

        For jobs that count these in foreachBatch; they override Spark's counts.
        """
        noted = {"quarantined": quarantined, "state_rows": state_rows}
        with self._lock:
            self._noted |= {name: count for name, count in noted.items() if count is not None}

    def note_rows(self, batch: int, rows: int) -> None:
        """Set the number of a batch's records, which the job reads instead of Spark's source."""
        with self._lock:
            self._rows[batch] = rows

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 (Spark's names)
        """Publish that a stream has started: its first batch may take long."""
        with self._lock:
            name = event.name or str(event.id)
            self._names[str(event.id)] = name
            self._reported[name] = ProgressRecord(FORMAT.schema, "running", self._trigger_seconds)
            self._publish(name)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Publish a batch's figures. Failures are logged, and do not affect the stream."""
        try:
            progress = json.loads(event.progress.json)
            with self._lock:
                self._batch(progress["name"] or progress["id"], batch_figures(progress))
        except (*UNANSWERED, ValueError, KeyError, TypeError):
            _log.exception("cannot report a stream's progress")

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Publish that a trigger found nothing to do."""
        with self._lock:
            name = self._names.get(str(event.id))
            if name is not None:
                nothing = {"rows": 0, "rows_per_second": 0.0, "offsets_behind": 0}
                told = self._reported[name]
                known = {k: v for k, v in nothing.items() if getattr(told, k) is not None}
                self._reported[name] = changed(told, **known)
                self._publish(name)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Do nothing: the job knows why its stream ended, and calls ``end``."""

    def end(self, state: State, why: str | None = None) -> None:
        """Publish how all streams ended, and ignore later events of Spark."""
        with self._lock:
            for name, told in sorted(self._reported.items()):
                told.why = why
                self._publish(name, state)
            self._ended = True

    def _batch(self, name: str, figures: ProgressRecord) -> None:
        before = self._reported.get(name)
        if before is not None and before.quarantined is not None:
            figures.quarantined = (figures.quarantined or 0) + before.quarantined
        figures.trigger_seconds = self._trigger_seconds
        rows = None if figures.batch is None else self._rows.pop(figures.batch, None)
        if rows is not None:
            figures.rows = rows
            figures.rows_per_second = (
                rows / figures.batch_seconds if figures.batch_seconds else None
            )
        self._reported[name] = figures
        self._publish(name)

    def _publish(self, name: str, state: State = "running") -> None:
        if not self._ended:
            record = changed(self._reported[name], state=state, **self._noted)
            self._topic.send(name, FORMAT.encode(record))


@contextmanager
def report_progress(
    spark: SparkSession,
    source_options: Mapping[str, str],
    topic: str,
    trigger_seconds: float | None = None,
) -> Iterator[Reporter]:
    """Publish the progress of streams that start inside the context, until it is left.

    ``source_options``: from ``kafka_options.source_options``. ``trigger_seconds``: the time between
    triggers; None for streams that read up to the present ends. At the end of the context streams
    are reported as stopped, or with an exception as failed, and why. Failures to publish are only
    logged.
    """
    written = ProgressTopic(spark, source_options, topic)
    reporter = Reporter(written, trigger_seconds)
    spark.streams.addListener(reporter)
    try:
        yield reporter
    except Exception as error:
        if not isinstance(error, UNANSWERED) or how_jvm_ended(spark) is None:
            _drain(spark)
            reporter.end(
                "failed", error.message if isinstance(error, CaughtupError) else one_line(error)
            )
        raise
    else:
        _drain(spark)
        reporter.end("stopped")
    finally:
        with suppress(*UNANSWERED):
            spark.streams.removeListener(reporter)
        written.close()


def _drain(spark: SparkSession) -> None:
    """Wait until Spark has delivered all events to listeners, which it does with a delay."""
    try:
        spark._jsc.sc().listenerBus().waitUntilEmpty(_DRAIN_MS)
    except UNANSWERED as error:
        _log.warning("the last progress of the streams may be lost: %s", one_line(error))


def batch_figures(progress: Json) -> ProgressRecord:
    """Return a running stream with the figures of a batch from Spark's progress; None if unknown.

    ``quarantined``: this batch's, from the observed metric of that name (``DataFrame.observe``).
    """
    sources = progress.get("sources") or []
    operators = progress.get("stateOperators") or []
    observed = (progress.get("observedMetrics") or {}).values()
    # Spark's sum over no rows is null.
    quarantined = [metrics["quarantined"] or 0 for metrics in observed if "quarantined" in metrics]
    seconds = progress["batchDuration"] / 1000
    rows = _rows(progress.get("numInputRows"), sources)
    return ProgressRecord(
        FORMAT.schema,
        "running",
        batch=progress["batchId"],
        batch_seconds=seconds,
        rows=rows,
        rows_per_second=rows / seconds if rows is not None and seconds else None,
        offsets_behind=_distance(sources, "endOffset", "latestOffset"),
        quarantined=sum(quarantined) if quarantined else None,
        state_rows=sum(one["numRowsTotal"] for one in operators) if operators else None,
        watermark_ms=_milliseconds((progress.get("eventTime") or {}).get("watermark")),
    )


def _rows(read: int | None, sources: Sequence[Json]) -> int | None:
    """Return the number of a batch's records, limited by its offsets.

    Spark counts records again each time that a job computes the batch. The offsets of the very
    first batch are unknown.
    """
    most = _distance(sources, "startOffset", "endOffset")
    return read if read is None or most is None else min(read, most)


def _distance(sources: Sequence[Json], start: str, end: str) -> int | None:
    """Return the sum, over all partitions, of the offsets between two positions of the sources.

    None if a source does not have one of them, such as the start of its very first batch.
    """
    offsets = 0
    for source in sources:
        before, after = source.get(start), source.get(end)
        if not isinstance(before, dict) or not isinstance(after, dict):
            return None
        for topic, partitions in after.items():
            for partition, offset in partitions.items():
                offsets += max(0, offset - before.get(topic, {}).get(partition, offset))
    return offsets if sources else None


def _milliseconds(moment: str | None) -> int | None:
    """Convert Spark's text of a time to ms; None for 1970-01-01, which means none yet."""
    if moment is None:
        return None
    return round(datetime.fromisoformat(moment).timestamp() * 1000) or None


class ProgressTopic:
    """Sends records one at a time; failures are only logged, once in a row."""

    def __init__(self, spark: SparkSession, source_options: Mapping[str, str], topic: str) -> None:
        self._spark = spark
        self._options = dict(source_options)
        self._topic = topic
        self._producer: JavaObject | None = None
        self._failing = False

    def send(self, key: str, value: bytes) -> bool:
        """Write a record; return whether the brokers have it. Blocks for a few seconds at most."""
        try:
            producer = self._open()
            if producer is None:
                return self._failed("there is no such topic; `caughtup run` creates it")
            jvm = self._jvm()
            record = jvm.org.apache.kafka.clients.producer.ProducerRecord(
                self._topic, encode_group(key), value
            )
            producer.send(record).get(_PATIENCE_MS, jvm.java.util.concurrent.TimeUnit.MILLISECONDS)
        except CaughtupError as error:
            return self._failed(error.message)
        except UNANSWERED as error:
            return self._failed(one_line(error))
        self._failing = False
        return True

    def close(self) -> None:
        """Close the producer."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        try:
            producer.close(self._jvm().java.time.Duration.ofMillis(_PATIENCE_MS))
        except UNANSWERED as error:
            self._failed(one_line(error))

    def _open(self) -> JavaObject | None:
        """Return the producer; None while there is no topic, which a producer would create."""
        if self._producer is None and not missing_topics(self._spark, [self._topic], self._options):
            jvm = self._jvm()
            properties = jvm.java.util.Properties()
            for name, value in sorted(self._options.items()):
                properties.setProperty(name.removeprefix("kafka."), value)
            for name, value in sorted(_PROPERTIES.items()):
                properties.setProperty(name, value)
            serializer = jvm.org.apache.kafka.common.serialization.ByteArraySerializer
            self._producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(
                properties, serializer(), serializer()
            )
        return self._producer

    def _jvm(self) -> JVMView:
        jvm = self._spark._jvm
        assert jvm is not None
        return jvm

    def _failed(self, why: str) -> bool:
        if not self._failing:
            _log.warning("writing to %s: %s; the stream itself continues", self._topic, why)
        self._failing = True
        return False
