"""Metrics of the process: which release it is, how its parts get on, and what any process has."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from functools import partial

from prometheus_client import ProcessCollector

import caughtup
from caughtup.agents.process.pulses import (
    CONNECT_READER,
    EVENT_LOOP,
    OFFSETS,
    PUBLISHER,
    TOPICS_READER,
)
from caughtup.agents.web.metrics.families import Family, Scrape

_CLUSTER = ("cluster",)
#: What the parts are called in labels.
_PARTS = {
    CONNECT_READER: "connect_reader",
    EVENT_LOOP: "event_loop",
    OFFSETS: "offsets_reader",
    PUBLISHER: "publisher",
    TOPICS_READER: "topics_reader",
}
_COLLECTOR = ProcessCollector(registry=None)


def process_families() -> Iterator[Family]:
    """Yield the metrics that every process has under these names, as far as the system tells them."""
    for metric in _COLLECTOR.collect():
        is_counter = metric.type == "counter"
        yield Family(
            f"{metric.name}_total" if is_counter else metric.name,
            metric.documentation.rstrip("."),
            (),
            partial(_lines, [sample.value for sample in metric.samples]),
            type="counter" if is_counter else "gauge",
        )


def _lines(figures: list[float], family: Family, scrape: Scrape, subject: None) -> Iterator[bytes]:
    for figure in figures:
        yield family.line((), figure)


def _build(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    values = (scrape.state.cluster, caughtup.__version__, platform.python_version())
    yield family.line(values, 1)


def _last_turns(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    for part, seconds in scrape.health.pulses.still_seconds().items():
        yield family.line((scrape.state.cluster, _PARTS[part]), seconds)


def _late(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    yield family.line((scrape.state.cluster,), scrape.health.late_seconds)


BUILD_FAMILIES = (
    Family(
        "caughtup_build_info",
        "1, with the release that runs and its Python version",
        ("cluster", "version", "python"),
        _build,
    ),
    Family(
        "caughtup_last_turn_age_seconds",
        "Seconds since a part of the process last made progress",
        ("cluster", "part"),
        _last_turns,
        known=lambda scrape: bool(scrape.health.pulses.still_seconds()),
    ),
    Family(
        "caughtup_event_loop_late_seconds_total",
        "Seconds by which turns of the event loop came late",
        _CLUSTER,
        _late,
        type="counter",
    ),
)
