"""The job that publishes catch-up rates of copies and of their changelogs to Kafka.

Records are written at least once. Duplicates after a crash do no harm: the topic is compacted, and
each record has all rates of its key.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from caughtup.models.errors import CaughtupError
from caughtup.pipelines.progress import report_progress
from caughtup.pipelines.rates.stages import rate_records
from caughtup.pipelines.spark.kafka_options import source_options
from caughtup.pipelines.spark.session import one_line
from caughtup.pipelines.spark.sources import missing_topics, record_stream, stopped_at_end

_POLL_SECONDS = 1
#: The most records of a batch, such as the first one after a pause.
_RECORDS_PER_BATCH = 1_000_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RatesOptions:
    """What the job reads and writes; ``progress_topic``: where it reports its progress.

    ``checkpoint``: a path or URI that Spark can write. ``kafka``: client properties, in any
    client's spelling. ``once``: read up to the present ends, and end.
    """

    bootstrap_servers: str
    checkpoint: str
    trigger_seconds: float
    positions_topic: str
    end_offsets_topic: str
    rates_topic: str
    progress_topic: str
    kafka: Mapping[str, str] = field(default_factory=dict)
    once: bool = False


def catch_up_rates(
    spark: SparkSession, options: RatesOptions, stop_requested: Callable[[], bool]
) -> None:
    """Publish catch-up rates until ``stop_requested``, or once if ``once`` is set.

    Raises CaughtupError ``connector_missing``, ``kafka_unreachable``, ``bad_kafka_property``,
    ``topic_missing`` or ``rates_failed``.
    """
    kafka = source_options(options.bootstrap_servers, options.kafka)
    trigger_seconds = None if options.once else options.trigger_seconds
    with report_progress(spark, kafka, options.progress_topic, trigger_seconds):
        follow(start_catch_up_rates(spark, options), stop_requested)


def start_catch_up_rates(spark: SparkSession, options: RatesOptions) -> StreamingQuery:
    """Check what the job needs, and start it. Raises CaughtupError like ``catch_up_rates``."""
    kafka = source_options(options.bootstrap_servers, options.kafka)
    read = (options.positions_topic, options.end_offsets_topic)
    records = record_stream(spark, read, kafka, _RECORDS_PER_BATCH)
    missing = missing_topics(spark, (*read, options.rates_topic), kafka)
    if missing:
        raise CaughtupError(
            "topic_missing",
            f"there is no topic {', '.join(missing)}; `caughtup run` creates its topics",
        )
    writer = (
        rate_records(records, options.positions_topic, options.trigger_seconds)
        .writeStream.queryName("rates")
        .format("kafka")
        .outputMode("append")
        .options(**kafka)
        .option("topic", options.rates_topic)
        .option("checkpointLocation", options.checkpoint)
    )
    if options.once:
        return writer.trigger(availableNow=True).start()
    pause_ms = round(options.trigger_seconds * 1000)
    return writer.trigger(processingTime=f"{pause_ms} milliseconds").start()


def follow(query: StreamingQuery, stop_requested: Callable[[], bool]) -> None:
    """Wait for the end of the job, or stop it when requested; log skipped records.

    Raises CaughtupError ``rates_failed`` when the job fails.
    """
    logged = -1
    try:
        with stopped_at_end(query, stop_requested):
            ended = False
            while not ended and not stop_requested():
                ended = bool(query.awaitTermination(_POLL_SECONDS))
                logged = _log_skipped(query, logged)
    except StreamingQueryException as error:
        raise CaughtupError("rates_failed", f"the rates ended: {one_line(error)}") from error


def _log_skipped(query: StreamingQuery, logged: int) -> int:
    for progress in query.recentProgress:
        decoded = progress["observedMetrics"].get("decoded")
        if progress["batchId"] > logged and decoded is not None:
            logged = progress["batchId"]
            if decoded["quarantined"]:
                _log.warning(
                    "skipped records that cannot be decoded: %d, such as %s",
                    decoded["quarantined"],
                    decoded["sample"],
                )
    return logged
