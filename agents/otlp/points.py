"""Data points for OTLP, made of the lines that ``/metrics`` has: names are declared once.

The lines of a million series are made in bulk, from columns; each metric's name, help and type come
from its ``Family``. OTLP's points have their labels as attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

import caughtup
from caughtup.agents.web.metrics.families import Family

#: A line of Prometheus' text format without a timestamp: its labels, and its value.
_LINE = re.compile(r"[^\s{]+(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)",?')
_ESCAPED = re.compile(r"\\(.)")
_MEANT = {"n": "\n"}
_NANOSECONDS = 1_000_000


class Times(NamedTuple):
    """The time of a round of points, and that of the process's start, in ms."""

    now_ms: int
    started_ms: int


class MetricLines(NamedTuple):
    """Some lines of one metric, as text."""

    family: Family
    text: bytes


def resource(cluster: str, cluster_name: str | None, instance: str) -> Resource:
    """Return the resource that all points belong to: the service, and the cluster that it watches.

    ``OTEL_RESOURCE_ATTRIBUTES`` and ``OTEL_SERVICE_NAME`` add to it, and win.
    """
    named = {} if cluster_name is None else {"kafka.cluster.name": cluster_name}
    own = Resource(
        {
            "service.name": "caughtup",
            "service.version": caughtup.__version__,
            "service.instance.id": instance,
            "kafka.cluster.id": cluster,
            **named,
        }
    )
    return own.merge(OTELResourceDetector().detect())


def metrics_data(batch: list[MetricLines], times: Times, of: Resource) -> MetricsData:
    """Return a request's content: the points of some lines, by metric."""
    points: dict[str, tuple[Family, list[NumberDataPoint]]] = {}
    for family, text in batch:
        points.setdefault(family.name, (family, []))[1].extend(_points(text, times))
    metrics = [_metric(family, found) for family, found in points.values() if found]
    scope = InstrumentationScope("caughtup", caughtup.__version__)
    return MetricsData([ResourceMetrics(of, [ScopeMetrics(scope, metrics, "")], "")])


def _metric(family: Family, points: list[NumberDataPoint]) -> Metric:
    """Return a metric; without a unit, which receivers would append to its name."""
    if family.type == "gauge":
        return Metric(family.name, family.documentation, "", Gauge(points))
    total = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
    return Metric(family.name, family.documentation, "", total)


def _points(text: bytes, times: Times) -> Iterator[NumberDataPoint]:
    now, started = times.now_ms * _NANOSECONDS, times.started_ms * _NANOSECONDS
    for line in text.decode().split("\n"):
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is not None:
            labels, value = found.groups()
            yield NumberDataPoint(_attributes(labels or ""), started, now, float(value))


def _attributes(labels: str) -> dict[str, str]:
    return {
        name: value if "\\" not in value else _ESCAPED.sub(_meant, value)
        for name, value in _LABEL.findall(labels)
    }


def _meant(found: re.Match[str]) -> str:
    return _MEANT.get(found[1], found[1])
