"""Metrics of Spark: the streams of caughtup's own jobs, and the batches of queries it watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter

from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.models.pipeline_progress import STATUSES, StreamProgress
from caughtup.models.records.pipeline_progress import ProgressRecord

_STREAM = ("cluster", "stream")


def _streams(scrape: Scrape) -> list[str]:
    return [stream for stream, _ in scrape.state.pipeline.streams()]


def _progress(scrape: Scrape, stream: str) -> StreamProgress:
    return scrape.state.pipeline.find(stream)


def _status(family: Family, scrape: Scrape, stream: str) -> Iterator[bytes]:
    now = _progress(scrape, stream).status(scrape.now_ms)
    for status in STATUSES:
        yield family.line((scrape.state.cluster, stream, status), status == now)


def _age(family: Family, scrape: Scrape, stream: str) -> Iterator[bytes]:
    age = max(0, scrape.now_ms - _progress(scrape, stream).heard_ms) / 1000
    yield family.line((scrape.state.cluster, stream), age)


def _figure(
    figure: Callable[[ProgressRecord], float | None],
    family: Family,
    scrape: Scrape,
    stream: str,
) -> Iterator[bytes]:
    if (value := figure(_progress(scrape, stream).record)) is not None:
        yield family.line((scrape.state.cluster, stream), value)


def _rows(family: Family, scrape: Scrape, stream: str) -> Iterator[bytes]:
    yield family.line((scrape.state.cluster, stream), scrape.state.pipeline.rows(stream))


PIPELINE_FAMILIES = (
    Family(
        "caughtup_pipeline_status",
        "1 for the state of a stream, 0 for the others",
        (*_STREAM, "status"),
        _status,
        _streams,
    ),
    Family(
        "caughtup_pipeline_progress_age_seconds",
        "Seconds since the stream last reported",
        _STREAM,
        _age,
        _streams,
    ),
    Family(
        "caughtup_pipeline_batch_seconds",
        "Duration of the stream's last batch in seconds",
        _STREAM,
        partial(_figure, attrgetter("batch_seconds")),
        _streams,
    ),
    Family(
        "caughtup_pipeline_rows_per_second",
        "Records that the last batch read in a second",
        _STREAM,
        partial(_figure, attrgetter("rows_per_second")),
        _streams,
    ),
    Family(
        "caughtup_pipeline_rows_total",
        "Records that the reported batches read",
        _STREAM,
        _rows,
        _streams,
        "counter",
    ),
    Family(
        "caughtup_pipeline_offsets_behind",
        "Offsets between the end of the last batch and the ends of the logs",
        _STREAM,
        partial(_figure, attrgetter("offsets_behind")),
        _streams,
    ),
    Family(
        "caughtup_pipeline_state_rows",
        "Rows that the stream keeps from batch to batch",
        _STREAM,
        partial(_figure, attrgetter("state_rows")),
        _streams,
    ),
    Family(
        "caughtup_pipeline_quarantined_total",
        "Records that could not be decoded",
        _STREAM,
        partial(_figure, attrgetter("quarantined")),
        _streams,
        "counter",
    ),
)


_QUERY = ("cluster", "group")


def _queries(scrape: Scrape) -> list[str]:
    return sorted(scrape.state.spark.queries)


def _timestamp(family: Family, scrape: Scrape, group: str, at_ms: int | None) -> Iterator[bytes]:
    if at_ms is not None:
        yield family.line((scrape.state.cluster, group), at_ms / 1000)


def _committed(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    return _timestamp(family, scrape, group, scrape.state.spark.queries[group].batch_ms)


def _started(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    return _timestamp(family, scrape, group, scrape.state.spark.queries[group].last.started_ms)


def _problems(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for path, problem in sorted(scrape.state.spark.problems.items()):
        yield family.line((scrape.state.cluster, path, problem.reason), 1)


SPARK_FAMILIES = (
    Family(
        "caughtup_spark_query_last_batch_timestamp_seconds",
        "When the query last committed a batch",
        _QUERY,
        _committed,
        _queries,
    ),
    Family(
        "caughtup_spark_query_batch_started_timestamp_seconds",
        "When the batch that is not committed yet began",
        _QUERY,
        _started,
        _queries,
    ),
    Family(
        "caughtup_spark_checkpoint_problems",
        "1 for a checkpoint that cannot be read, with the problem",
        ("cluster", "checkpoint", "problem"),
        _problems,
    ),
)
