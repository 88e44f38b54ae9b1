"""The job that writes the history of a cluster to Delta tables, as one stream over all topics.

So a batch has all topics up to about the same time. Spark plans a batch's offsets; the records are
read by ``HistoryOptions.read``, as the service reads them. A job that was stopped or killed continues with its checkpoint; no row is lost or written
twice. After a batch, once a day (UTC), the tables are maintained; the day of the last upkeep is in
the state's table.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from caughtup.models.errors import CaughtupError
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.records.topics import PIPELINE_PROGRESS, with_prefix
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines import schema
from caughtup.pipelines.delta.store import store_for
from caughtup.pipelines.delta.upkeep import UpkeepOptions, keep_up
from caughtup.pipelines.history.batch import HistoryBatches
from caughtup.pipelines.history.decoding.log_ranges import ReadRanges, lacking_module
from caughtup.pipelines.history.decoding.records_before import records_before
from caughtup.pipelines.history.identity import own_tables
from caughtup.pipelines.history.lost_ranges import (
    FirstOffsets,
    batch_offsets,
    lost_ranges,
    ranges_of,
)
from caughtup.pipelines.history.tables import LAYOUTS, HistoryTables, offsets_digest
from caughtup.pipelines.progress import report_progress
from caughtup.pipelines.spark.kafka_options import source_options
from caughtup.pipelines.spark.session import UNANSWERED, Files, one_line
from caughtup.pipelines.spark.sources import missing_topics, record_stream, stopped_at_end

_log = logging.getLogger(__name__)


@contextmanager
def _unseen(_what: str, _steps: int) -> Iterator[Callable[[int], None]]:
    yield lambda _: None


class DailyUpkeep:
    """Compacts a history's tables, and deletes rows of days more than ``keep`` days ago."""

    def __init__(self, tables: HistoryTables, keep: int | None) -> None:
        self._tables = tables
        self._keep = keep

    def keep_up(self, today: date) -> None:
        """Do the upkeep, unless it was done today."""
        state = self._tables.state
        try:
            if (state.kept_up() or 0) >= today.toordinal():
                return
            options = UpkeepOptions(today, keep=self._keep)
            names = [layout.name for layout in LAYOUTS]
            problems = keep_up(self._tables.root, names, options, _unseen).problems
            state.keep_up_done(today.toordinal())
        except CaughtupError as error:
            problems = [error.message]
        for problem in problems:
            _log.warning("maintaining the tables: %s", problem)


_POLL_SECONDS = 1
#: Spark's condition when a file of a checkpoint was written by another query meanwhile.
_OTHER_JOB = "CONCURRENT_STREAM_LOG_UPDATE"


@dataclass(frozen=True, slots=True)
class HistoryOptions:
    """What the job reads, and where it writes.

    ``output`` and ``checkpoint``: paths or URIs that Spark can write. ``trigger_seconds``: the time
    between batches; None: read up to the present ends, and end. ``kafka``: client properties, in any
    client's spelling. ``topics``: the service's own topics, by table. ``parameters``: the settings
    of applications, by group. ``progress_topic`` gets a record for each batch. ``upkeep``: compact
    the tables once a day (UTC), and delete rows of days more than ``keep`` days ago. ``store``:
    variables that override the environment when the tables are opened. ``read`` reads ranges of logs
    in Spark's tasks, and distinguishes transactions; if it is None, Spark's source reads what is
    committed, and an open transaction holds back all later records of its partition.
    """

    bootstrap_servers: str
    output: str
    checkpoint: str
    trigger_seconds: float | None
    kafka: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=lambda: dict(schema.SERVICE_TOPICS))
    parameters: Mapping[str, ApplicationParameters] = field(default_factory=dict)
    records_per_batch: int = schema.RECORDS_PER_BATCH
    progress_topic: str = with_prefix(PIPELINE_PROGRESS)
    upkeep: bool = True
    keep: int | None = None
    store: Mapping[str, str] = field(default_factory=dict, repr=False)
    read: ReadRanges | None = field(default=None, repr=False)


def history(
    spark: SparkSession, options: HistoryOptions, stop_requested: Callable[[], bool]
) -> None:
    """Write the history until ``stop_requested``, or once without a trigger.

    Raises CaughtupError ``executors_unfit``, ``connector_missing``, ``connector_unfit``,
    ``kafka_unreachable``, ``bad_kafka_property``, ``output_unwritable``, ``bad_output``,
    ``bad_checkpoint`` or ``history_failed``.
    """
    HistoryJob(spark, options).run(stop_requested)


class HistoryJob:
    """The job, with its stream, tables and brokers checked by the constructor."""

    def __init__(self, spark: SparkSession, options: HistoryOptions) -> None:
        """Check what the job needs. Raises CaughtupError like ``history``."""
        self._options = options = _readable(spark, options)
        self._output = options.output.rstrip("/")
        self._checkpoint = options.checkpoint.rstrip("/")
        source = self._source = source_options(options.bootstrap_servers, options.kafka)
        self._spark = spark
        topics = (CONSUMER_OFFSETS, *sorted(options.topics.values()))
        committed = options.read is None
        self._records = record_stream(
            spark, topics, source, options.records_per_batch, committed=committed
        )
        for topic in missing_topics(spark, topics, source):
            _log.warning("there is no topic %s yet; its records count from its creation on", topic)
        self._files = Files(spark)
        self._files.check_writable(self._checkpoint)
        self._first_offsets = FirstOffsets(spark, source)
        cluster = self._first_offsets.cluster_id()
        store = store_for(spark, self._output, {**os.environ, **options.store})
        tables = own_tables(self._files, store, self._checkpoint, cluster)
        self._batches = HistoryBatches(
            spark,
            tables,
            {topic: table for table, topic in options.topics.items()},
            options.parameters,
            options.read,
        )
        self._upkeep = DailyUpkeep(tables, options.keep) if options.upkeep else None
        self._failure: CaughtupError | None = None
        self._quarantined = 0

    def run(self, stop_requested: Callable[[], bool]) -> None:
        """Write batches until ``stop_requested``; the stream is stopped in any case."""
        options = self._options
        with report_progress(
            self._spark, self._source, options.progress_topic, options.trigger_seconds
        ) as self._reporter:
            self._follow(self._start(), stop_requested)

    def _follow(self, query: StreamingQuery, stop_requested: Callable[[], bool]) -> None:
        try:
            with stopped_at_end(query, stop_requested):
                while not query.awaitTermination(_POLL_SECONDS):
                    if stop_requested():
                        return
        except StreamingQueryException as error:
            raise self._failure or _failed(error) from error
        finally:
            with suppress(*UNANSWERED):
                self._first_offsets.close()

    def _start(self) -> StreamingQuery:
        writer = (
            self._records.writeStream.queryName("history")
            .foreachBatch(self._process)
            .option("checkpointLocation", self._checkpoint)
        )
        seconds = self._options.trigger_seconds
        if seconds is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{round(seconds * 1000)} milliseconds")
        try:
            return writer.start()
        except PySparkException as error:
            raise _failed(error) from error

    def _process(self, records: DataFrame, batch: int) -> None:
        try:
            self._write(records, batch)
        except CaughtupError as error:
            self._failure = error
        except Exception as error:  # noqa: BLE001 (any error is reported by _follow)
            self._failure = _failed(error)
        if self._failure is not None:
            # Spark searches the text of an exception raised here with a regular expression, whose
            # stack overflows for long traces. ``_follow`` raises the failure itself.
            raise RuntimeError(self._failure.code) from None

    def _write(self, records: DataFrame, batch: int) -> None:
        before = batch_offsets(self._files, self._checkpoint, batch - 1)
        until = batch_offsets(self._files, self._checkpoint, batch)
        first = self._first_offsets.ask(before)
        lost = lost_ranges(before, until, first, "deleted before it was read")
        ranges = ranges_of(before, until)
        earlier = None
        if before and self._batches.begins():
            earlier = records_before(self._spark, self._source, before, self._batches.buckets)
        digest = offsets_digest(until)
        quarantined = self._batches.write(batch, digest, records, lost, ranges, earlier)
        self._quarantined += quarantined.records
        if quarantined.rows is not None:
            self._reporter.note_rows(batch, quarantined.rows)
        self._reporter.note(quarantined=self._quarantined)
        if quarantined.records:
            _log.warning(
                "records that cannot be decoded or are gone: %d, such as %s; they are in the table "
                "quarantine",
                quarantined.records,
                quarantined.sample,
            )
        if self._upkeep is not None:
            self._upkeep.keep_up(datetime.now(UTC).date())


def _readable(spark: SparkSession, options: HistoryOptions) -> HistoryOptions:
    """Return the options without a reader that Spark's executors cannot use."""
    if options.read is None:
        return options
    try:
        lacking = lacking_module(spark, options.read)
    except (PySparkException, Py4JJavaError) as error:
        why = f"Spark's executors can't run the job: {one_line(error)}"
        raise CaughtupError("executors_unfit", why) from error
    if lacking is None:
        return options
    _log.warning(
        "Spark's executors have no %s: Spark's source reads, as committed, and an open transaction "
        "on a partition of %s holds back its later commits; type there: pip install caughtup",
        lacking,
        CONSUMER_OFFSETS,
    )
    return replace(options, read=None)


def _failed(error: Exception) -> CaughtupError:
    why = one_line(error)
    if _OTHER_JOB in why:
        return CaughtupError(
            "bad_checkpoint",
            "another job writes with this checkpoint: end one of them, or name a checkpoint and "
            "tables of its own",
        )
    return CaughtupError("history_failed", f"the history ended: {why}")
