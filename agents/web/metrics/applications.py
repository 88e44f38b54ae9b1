"""Metrics of Streams applications: generations, decisions, movements, probing rebalances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.models.decisions.application import Application
from caughtup.models.records.recommendations import RESULTS

_GROUP = ("cluster", "group")


def _groups(scrape: Scrape) -> list[str]:
    return sorted(scrape.state.applications)


def _figure(
    figure: Callable[[Application, Scrape], float | None],
    family: Family,
    scrape: Scrape,
    group: str,
) -> Iterator[bytes]:
    value = figure(scrape.state.applications[group], scrape)
    if value is not None:
        yield family.line((scrape.state.cluster, group), value)


def _parameter(
    name: str, divisor: int, family: Family, scrape: Scrape, group: str
) -> Iterator[bytes]:
    value = scrape.state.applications.config(group, name)
    yield family.line((scrape.state.cluster, group), value / divisor)


def _is_due(application: Application, scrape: Scrape) -> bool:
    due = application.newest.next_rebalance()
    return due is not None and due[0] <= scrape.now_ms


def _due_at(application: Application, _: Scrape) -> float | None:
    due = application.newest.next_rebalance()
    return None if due is None else due[0] / 1000


def _movements(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    for kind, count in sorted(scrape.state.applications[group].movement_counts.items()):
        yield family.line((scrape.state.cluster, group, kind), count)


def _exact_decisions(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    counts = scrape.state.applications[group].exact_counts
    for result in RESULTS:
        yield family.line((scrape.state.cluster, group, result), counts[result])


APPLICATION_FAMILIES = (
    Family(
        "caughtup_group_generation",
        "Generation of a Streams group",
        _GROUP,
        partial(_figure, lambda application, _: application.newest.generation),
        _groups,
    ),
    Family(
        "caughtup_acceptable_recovery_lag_records",
        "acceptable.recovery.lag: a copy with at most this lag counts as caught up",
        _GROUP,
        partial(_parameter, "acceptable.recovery.lag", 1),
        _groups,
    ),
    Family(
        "caughtup_probing_rebalance_interval_seconds",
        "probing.rebalance.interval.ms, in seconds",
        _GROUP,
        partial(_parameter, "probing.rebalance.interval.ms", 1000),
        _groups,
    ),
    Family(
        "caughtup_probing_rebalance_due",
        "1 if a probing rebalance is due and has not happened",
        _GROUP,
        partial(_figure, _is_due),
        _groups,
    ),
    Family(
        "caughtup_probing_rebalance_due_timestamp_seconds",
        "When the next probing rebalance is due",
        _GROUP,
        partial(_figure, _due_at),
        _groups,
    ),
    Family(
        "caughtup_movements_total",
        "Movements recommended, by kind",
        (*_GROUP, "kind"),
        _movements,
        _groups,
        "counter",
    ),
    Family(
        "caughtup_rebalances_total",
        "Generations seen",
        _GROUP,
        partial(_figure, lambda application, _: application.rebalances),
        _groups,
        "counter",
    ),
    Family(
        "caughtup_exact_decisions_total",
        "Leaders' decisions recomputed, by result",
        (*_GROUP, "result"),
        _exact_decisions,
        _groups,
        "counter",
    ),
    Family(
        "caughtup_recommendations_published_total",
        "Recommendations published",
        _GROUP,
        partial(_figure, lambda application, _: application.published),
        _groups,
        "counter",
    ),
)
