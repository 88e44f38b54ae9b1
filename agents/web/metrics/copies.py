"""Metrics of copies that are to catch up, and of when probing for them is worth it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.models.copies.catch_up_rates import SOURCES
from caughtup.models.copies.probing import Probing
from caughtup.models.records.recommendations import CostRecord

_GROUP = ("cluster", "group")
#: The parts of a recommendation that say what a plan costs, by the plan's name.
_PLANS = {"caughtup": "cost", "kafka": "kafka_cost"}


def _watched(scrape: Scrape) -> list[str]:
    return sorted(scrape.state.watches)


def _applications(scrape: Scrape) -> list[str]:
    return sorted(scrape.state.applications)


def _rates(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    counts = scrape.state.watches[group].rate_sources()
    for source in SOURCES:
        yield family.line((scrape.state.cluster, group, source), counts[source])


def _rates_age(family: Family, scrape: Scrape, _: None) -> Iterator[bytes]:
    newest_ms = scrape.state.rates.newest_ms
    if newest_ms is not None:
        age = max(0, scrape.now_ms - newest_ms) / 1000
        yield family.line((scrape.state.cluster,), age)


def _probing(
    figure: Callable[[Probing], float], family: Family, scrape: Scrape, group: str
) -> Iterator[bytes]:
    probing = scrape.state.watches[group].probing
    if probing is not None:
        yield family.line((scrape.state.cluster, group), figure(probing))


def _plan_costs(figure: str, family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    decided = scrape.state.applications[group].decided
    recommended = decided.recommendation if decided else None
    if recommended is not None:
        for plan, field in _PLANS.items():
            cost: CostRecord = getattr(recommended, field)
            yield family.line((scrape.state.cluster, group, plan), getattr(cost, figure))


COPY_FAMILIES = (
    Family(
        "caughtup_catch_up_rates_copies",
        "Copies that are to catch up and whose rate is known, by who measured it",
        (*_GROUP, "source"),
        _rates,
        _watched,
    ),
    Family(
        "caughtup_catch_up_rates_age_seconds",
        "Time since Spark's newest catch-up rate was written",
        ("cluster",),
        _rates_age,
    ),
    Family(
        "caughtup_probing_rebalance_worthwhile",
        "1 if a probing rebalance now would promote a warm-up",
        _GROUP,
        partial(_probing, lambda probing: probing.worthwhile_now),
        _watched,
    ),
    Family(
        "caughtup_probing_rebalances_total",
        "Probing rebalances seen",
        _GROUP,
        partial(_probing, lambda probing: probing.fired),
        _watched,
        "counter",
    ),
    Family(
        "caughtup_probing_rebalances_needless_total",
        "Probing rebalances at which no copy had newly caught up",
        _GROUP,
        partial(_probing, lambda probing: probing.needless),
        _watched,
        "counter",
    ),
    Family(
        "caughtup_plan_copies",
        "Copies of state to build until the group is balanced, by plan",
        (*_GROUP, "plan"),
        partial(_plan_costs, "copies"),
        _applications,
    ),
    Family(
        "caughtup_plan_seconds",
        "Seconds until the group is balanced, by plan, at one probing interval a rebalance",
        (*_GROUP, "plan"),
        partial(_plan_costs, "seconds"),
        _applications,
    ),
)
