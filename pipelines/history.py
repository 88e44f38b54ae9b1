"""The lag history: every change of commits and end offsets, as rows of a Parquet table.

A transactional record counts once it is committed, and a record that can't be decoded is
counted, logged and skipped. Stopped and started again with the same checkpoint, the job goes on
where it was, and a row is neither lost nor written twice.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from py4j.protocol import Py4JError
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from caughtup.models.errors import CaughtupError
from caughtup.pipelines import schema
from caughtup.pipelines.kafka_options import source_options
from caughtup.pipelines.session import one_line
from caughtup.pipelines.sources import missing_topics, record_stream
from caughtup.pipelines.stages import lag_history

_POLL_SECONDS = 1
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """What the job reads, where it writes.

    ``output`` and ``checkpoint`` are paths or URIs that Spark can write. ``trigger_seconds`` None
    means: take what there is, and end; each trigger writes files of its own. ``kafka`` holds client properties, in any client's
    spelling.
    """

    bootstrap_servers: str
    output: str
    checkpoint: str
    trigger_seconds: float | None
    kafka: Mapping[str, str] = field(default_factory=dict)
    end_offsets_topic: str = schema.END_OFFSETS_TOPIC


def history(
    spark: SparkSession, options: HistoryOptions, stop_requested: Callable[[], bool]
) -> None:
    """Write the lag history until ``stop_requested``, or once if so told.

    Raises CaughtupError ``connector_missing``, ``kafka_unreachable``, ``bad_kafka_property``,
    ``output_unwritable`` or ``history_failed``.
    """
    follow(start_history(spark, options), stop_requested)


def start_history(spark: SparkSession, options: HistoryOptions) -> StreamingQuery:
    """Check what the job needs, and start it. Raises CaughtupError as history does."""
    source = source_options(options.bootstrap_servers, options.kafka)
    topics = (schema.OFFSETS_TOPIC, options.end_offsets_topic)
    records = record_stream(spark, topics, source)
    for topic in missing_topics(spark, topics, source):
        _log.warning("there is no topic %s yet; its records count from when it is made", topic)
    for uri in (options.output, options.checkpoint):
        _check_writable(spark, uri)
    writer = (
        lag_history(records)
        .writeStream.queryName("lag history")
        .format("parquet")
        .outputMode("append")
        .partitionBy("date", "group_bucket")
        .option("path", options.output)
        .option("checkpointLocation", options.checkpoint)
    )
    if options.trigger_seconds is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(
            processingTime=f"{round(options.trigger_seconds * 1000)} milliseconds"
        )
    return writer.start()


def follow(query: StreamingQuery, stop_requested: Callable[[], bool]) -> None:
    """Log what a running job skips until it ends or is to stop; never leave it running.

    Raises CaughtupError ``history_failed`` when the job fails.
    """
    logged = -1
    try:
        ended = False
        while not ended and not stop_requested():
            ended = bool(query.awaitTermination(_POLL_SECONDS))
            logged = _log_quarantine(query, logged)
    except StreamingQueryException as error:
        if stop_requested():  # what makes us stop may have reached Spark's workers first
            return
        raise CaughtupError("history_failed", f"the history ended: {one_line(error)}") from error
    finally:
        query.stop()


def _log_quarantine(query: StreamingQuery, logged: int) -> int:
    for progress in query.recentProgress:
        decoded = progress["observedMetrics"].get("decoded")
        if progress["batchId"] > logged and decoded is not None:
            logged = progress["batchId"]
            if decoded["quarantined"]:
                _log.warning(
                    "skipped %d records that can't be decoded, such as %s",
                    decoded["quarantined"],
                    decoded["sample"],
                )
    return logged


def _check_writable(spark: SparkSession, uri: str) -> None:
    """Make the directory now: Spark would find out only after its first trigger's work."""
    jvm = spark._jvm
    assert jvm is not None
    try:
        path = jvm.org.apache.hadoop.fs.Path(uri)
        files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        probe = jvm.org.apache.hadoop.fs.Path(path, "_caughtup_probe")
        files.create(probe, True).close()
        files.delete(probe, False)
    except Py4JError as error:
        raise CaughtupError("output_unwritable", f"can't write {uri}: {one_line(error)}") from error
