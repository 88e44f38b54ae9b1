"""Metrics of copies of tasks: their lag, verdicts and rates, and probing rebalances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from caughtup.agents.web.metrics.families import Family, Scrape
from caughtup.agents.web.metrics.group_lines import escaped
from caughtup.models.copies.catch_up_rates import SOURCES
from caughtup.models.copies.probing import Probing
from caughtup.models.copies.warmups import CopyAssessment
from caughtup.models.records.recommendations import CostRecord
from caughtup.models.verdicts import COPIES

_COPY = ("cluster", "group", "process", "client_id", "task", "role")


def _streams_groups(scrape: Scrape) -> list[str]:
    return sorted(scrape.state.applications.keys() | scrape.state.groups.streams.keys())


def _watched(scrape: Scrape) -> list[str]:
    return sorted(scrape.state.watches)


def _lags(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    before = f'{scrape.cluster_label},group="{escaped(group)}",process="'
    for copy in scrape.state.task_rows(group):
        if copy.lag is not None:
            labels = (
                f'{before}{escaped(copy.process)}",client_id="{escaped(copy.client_id)}",'
                f'task="{copy.task}",role="{copy.role}"'
            )
            yield family.line_of(labels, copy.lag)


def _counts(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    roles = Counter(copy.role for copy in scrape.state.task_rows(group))
    before = f'{scrape.cluster_label},group="{escaped(group)}",role='
    for role, count in sorted(roles.items()):
        yield family.line_of(f'{before}"{role}"', count)


def _statuses(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    for labels, assessed in _assessed(scrape, group):
        yield b"".join(
            family.line_of(f'{labels},status="{verdict}"', int(verdict == assessed.verdict))
            for verdict in COPIES.words
        )


def _etas(family: Family, scrape: Scrape, group: str) -> Iterator[bytes]:
    for labels, assessed in _assessed(scrape, group):
        if (eta := assessed.figures.eta) is not None:
            yield family.line_of(labels, eta.seconds)


def _assessed(scrape: Scrape, group: str) -> Iterator[tuple[str, CopyAssessment]]:
    """Yield a group's copies as last assessed, each with the labels of its series."""
    watch = scrape.state.watches.get(group)
    if watch is None:
        return
    before = f'{scrape.cluster_label},group="{escaped(group)}",process="'
    clients, copies = watch.client_ids, watch.copies
    for key, assessed in sorted(copies.items()):
        labels = (
            f'{before}{escaped(key.process)}",client_id="{escaped(clients[key.process])}",'
            f'task="{key.task}",role="{assessed.role}"'
        )
        yield labels, assessed


TASK_FAMILIES = (
    Family(
        "caughtup_task_lag_records",
        "Offsets a copy of a task has yet to restore, as last reported",
        _COPY,
        _lags,
        _streams_groups,
    ),
    Family(
        "caughtup_task_copies",
        "Copies of tasks, by role",
        ("cluster", "group", "role"),
        _counts,
        _streams_groups,
    ),
    Family(
        "caughtup_task_status",
        "1 for the verdict on a copy that is to catch up, 0 for the others",
        (*_COPY, "status"),
        _statuses,
        _watched,
    ),
    Family(
        "caughtup_task_catchup_eta_seconds",
        "Seconds until the copy is caught up; +Inf: never",
        _COPY,
        _etas,
        _watched,
    ),
)


_GROUP = ("cluster", "group")
#: The fields of a recommendation with the costs of a plan, by the plan's name.
_PLANS = {"caughtup": "cost", "kafka": "kafka_cost"}


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
