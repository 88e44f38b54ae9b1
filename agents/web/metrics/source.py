"""Metrics of where groups and commits come from, and of what asking coordinators takes."""

from __future__ import annotations

from collections.abc import Iterator

from caughtup.agents.web.metrics.families import Family, Scrape

_CLUSTER = ("cluster",)


def _source(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    asks = scrape.health.source is not None
    for name, is_used in (("ask", asks), ("log", not asks)):
        yield family.line((scrape.state.cluster, name), int(is_used))


def _ask_requests(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    yield family.line((scrape.state.cluster,), scrape.health.ask_requests)


def _throttled_seconds(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    yield family.line((scrape.state.cluster,), scrape.health.throttled_seconds)


def _ask_seconds(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    if scrape.health.ask_seconds is not None:
        yield family.line((scrape.state.cluster,), scrape.health.ask_seconds)


SOURCE_FAMILIES = (
    Family(
        "caughtup_source",
        "1 for where groups and commits come from: log, or ask, which knows less",
        ("cluster", "source"),
        _source,
    ),
    Family(
        "caughtup_source_requests_total",
        "Requests by which coordinators are asked about groups: all of them, or share groups",
        _CLUSTER,
        _ask_requests,
        type="counter",
    ),
    Family(
        "caughtup_source_throttled_seconds_total",
        "Seconds that brokers made the service wait for answers about groups, by their quotas",
        _CLUSTER,
        _throttled_seconds,
        type="counter",
    ),
    Family(
        "caughtup_source_round_seconds",
        "How long the last round of these requests took; at most ask_interval is as set",
        _CLUSTER,
        _ask_seconds,
    ),
)
