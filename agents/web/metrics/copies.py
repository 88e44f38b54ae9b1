"""Metrics of copies that are to catch up, and of when probing for them is worth it."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from caughtup.agents.web.metrics.partition_series import PART
from caughtup.models.copies.catch_up_rates import SOURCES
from caughtup.models.state.cluster import ClusterState

_GROUP = ("cluster", "group")


def copy_families(state: ClusterState, now_ms: int) -> Iterator[Metric]:
    """Give the families at a moment (ms), with what was last worked out; else they are empty."""
    yield from _rates(state, now_ms)
    yield from _probing(state, now_ms)
    yield from _plans(state, now_ms)


def _rates(state: ClusterState, now_ms: int) -> Iterator[Metric]:
    copies = GaugeMetricFamily(
        "caughtup_catch_up_rates_copies",
        "Copies whose pace is known, by who measured it",
        labels=(*_GROUP, "source"),
    )
    age = GaugeMetricFamily(
        "caughtup_catch_up_rates_age_seconds",
        "Time since Spark's newest catch-up rate was written",
        labels=("cluster",),
    )

    def add(group: str) -> None:
        counts = state.watches[group].rate_sources()
        for source in SOURCES:
            copies.add_metric([state.cluster, group, source], counts[source])

    state.faults.for_each(PART, sorted(state.watches), add, str, now_ms)
    if state.rates.newest_ms is not None:
        age.add_metric([state.cluster], max(0, now_ms - state.rates.newest_ms) / 1000)
    yield from (copies, age)


def _probing(state: ClusterState, now_ms: int) -> Iterator[Metric]:
    worthwhile = GaugeMetricFamily(
        "caughtup_probing_rebalance_worthwhile",
        "Whether a probing rebalance now would promote a warm-up",
        labels=_GROUP,
    )
    fired = CounterMetricFamily(
        "caughtup_probing_rebalances", "Probing rebalances seen", labels=_GROUP
    )
    needless = CounterMetricFamily(
        "caughtup_probing_rebalances_needless",
        "Probing rebalances that found nothing newly caught up",
        labels=_GROUP,
    )

    def add(group: str) -> None:
        probing, labels = state.watches[group].probing, [state.cluster, group]
        if probing is not None:
            worthwhile.add_metric(labels, probing.worthwhile_now)
            fired.add_metric(labels, probing.fired)
            needless.add_metric(labels, probing.needless)

    state.faults.for_each(PART, sorted(state.watches), add, str, now_ms)
    yield from (worthwhile, fired, needless)


def _plans(state: ClusterState, now_ms: int) -> Iterator[Metric]:
    copies = GaugeMetricFamily(
        "caughtup_plan_copies", "Copies of state to build until balanced", labels=(*_GROUP, "plan")
    )
    seconds = GaugeMetricFamily(
        "caughtup_plan_seconds",
        "Time until balanced at the probing interval",
        labels=(*_GROUP, "plan"),
    )

    def add(group: str) -> None:
        decided = state.applications[group].decided
        record = decided.record if decided else None
        if record is None:
            return
        for plan, field in (("caughtup", "cost"), ("kafka", "kafka_cost")):
            labels = [state.cluster, group, plan]
            if "copies" in record[field]:
                copies.add_metric(labels, record[field]["copies"])
            if "seconds" in record[field]:
                seconds.add_metric(labels, record[field]["seconds"])

    state.faults.for_each(PART, sorted(state.applications), add, str, now_ms)
    yield from (copies, seconds)
