"""Metrics of the streams on Spark."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from caughtup.models.pipeline_progress import STATUSES, StreamProgressTable

_STREAM = ("cluster", "stream")
#: Gauges by the field of StreamProgress that they tell.
_FIGURES = {
    "batch_seconds": "How long the last batch took",
    "rows_per_second": "Records that the last batch read in a second",
    "offsets_behind": "Offsets between the end of the last batch and the ends of the logs",
    "state_rows": "Rows that the stream keeps from batch to batch",
}


def pipeline_families(cluster: str, progress: StreamProgressTable, now_ms: int) -> Iterator[Metric]:
    """Give what each stream told last, and how it fares at a moment (ms)."""
    status = _gauge("status", "How a stream fares", (*_STREAM, "status"))
    age = _gauge("progress_age_seconds", "Since the stream was last heard", _STREAM)
    figures = {field: _gauge(field, said, _STREAM) for field, said in _FIGURES.items()}
    quarantined = CounterMetricFamily(
        "caughtup_pipeline_quarantined", "Records that could not be decoded", labels=_STREAM
    )
    for stream, told in progress.streams():
        labels = [cluster, stream]
        now = told.status(now_ms)
        for name in STATUSES:
            status.add_metric([*labels, name], name == now)
        age.add_metric(labels, max(0, now_ms - told.heard_ms) / 1000)
        for field, gauge in figures.items():
            if (value := getattr(told, field)) is not None:
                gauge.add_metric(labels, value)
        if told.quarantined is not None:
            quarantined.add_metric(labels, told.quarantined)
    yield from (status, age, *figures.values(), quarantined)


def _gauge(name: str, documentation: str, labels: tuple[str, ...]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"caughtup_pipeline_{name}", documentation, labels=labels)
