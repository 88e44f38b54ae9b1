"""Metrics of the streams on Spark: what each said last, and how it fares."""

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
