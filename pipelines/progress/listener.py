"""Publishes the progress of running streams: each trigger, and how they ended."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from caughtup.models.errors import CaughtupError
from caughtup.models.records.pipeline_progress import State
from caughtup.pipelines.progress.records import batch_figures, encode_progress
from caughtup.pipelines.progress.topic import ProgressTopic
from caughtup.pipelines.spark.jvm import UNANSWERED, how_jvm_ended
from caughtup.pipelines.spark.session import one_line

#: How long a stream that ends waits until what it did last is told.
_DRAIN_MS = 10_000
_log = logging.getLogger(__name__)


class Reporter(StreamingQueryListener):
    """Listens to the streams of a session, and tells of each under its query's name.

    Spark calls it from a thread of its own; a stream never waits for it but when it starts.
    """

    def __init__(self, topic: ProgressTopic, trigger_seconds: float | None) -> None:
        self._topic = topic
        self._trigger_seconds = trigger_seconds
        self._lock = threading.Lock()
        self._told: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}
        self._noted: dict[str, int] = {}
        self._ended = False

    def note(self, *, quarantined: int | None = None, state_rows: int | None = None) -> None:
        """Have the next report say so, too: records quarantined since the start, rows of state.

        For a job that counts them itself, in foreachBatch; it goes before what Spark counted.
        """
        noted = {"quarantined": quarantined, "state_rows": state_rows}
        with self._lock:
            self._noted |= {name: count for name, count in noted.items() if count is not None}

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 (Spark's names)
        """Publish that a stream is there: its first batch may take long."""
        with self._lock:
            name = event.name or str(event.id)
            self._names[str(event.id)] = name
            self._told[name] = {"trigger_seconds": self._trigger_seconds}
            self._tell(name)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Publish a batch. A record that can't be made or sent is logged, and the stream goes on."""
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
                told = self._told[name]
                self._told[name] |= {k: v for k, v in nothing.items() if told.get(k) is not None}
                self._tell(name)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Nothing: whoever runs the stream knows better why it ended, and says so to ``end``."""

    def end(self, state: State, why: str | None = None) -> None:
        """Publish how all streams ended, and ignore what Spark says afterwards."""
        with self._lock:
            for name, told in sorted(self._told.items()):
                told["why"] = why
                self._tell(name, state)
            self._ended = True

    def _batch(self, name: str, figures: dict[str, Any]) -> None:
        before = self._told.get(name, {}).get("quarantined")
        if before is not None:
            figures["quarantined"] = (figures["quarantined"] or 0) + before
        self._told[name] = {"trigger_seconds": self._trigger_seconds, **figures}
        self._tell(name)

    def _tell(self, name: str, state: State = "running") -> None:
        if not self._ended:
            self._topic.send(name, encode_progress(state, self._told[name] | self._noted))


@contextmanager
def report_progress(
    spark: SparkSession,
    source_options: Mapping[str, str],
    topic: str,
    trigger_seconds: float | None = None,
) -> Iterator[Reporter]:
    """Publish the progress of streams started within the context, until it is left.

    ``source_options`` are kafka_options.source_options'. ``trigger_seconds`` is the time from one
    trigger to the next; None for streams that take what there is and end. A stream that ends with
    the context is told to have stopped, and with an exception that leaves the context, to have
    failed, and why. Raises nothing of its own: what can't be written is logged once.
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
    """Wait until listeners have heard of everything that happened: they do so later."""
    try:
        spark._jsc.sc().listenerBus().waitUntilEmpty(_DRAIN_MS)
    except UNANSWERED as error:
        _log.warning("the last progress of the streams may be lost: %s", one_line(error))
