"""The dashboard of Kafka Streams applications: copies of tasks, rebalances, recommendations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scripts.dashboards.copies import by_role, catching_up, lags
from scripts.dashboards.layout import (
    MOVEMENTS,
    REBALANCES,
    RECOMMENDATIONS,
    STARTS,
    group_variable,
    made,
)
from scripts.dashboards.links import OVERVIEW_PAGE, STREAMS, Link
from scripts.dashboards.panels import LIMIT, lines, stat

_RESULTS = {"match": "green", "consistent": "blue", "mismatch": "red", "undetermined": "orange"}


def streams() -> str:
    """Return the dashboard of Kafka Streams applications as JSON."""
    return made(
        "caughtup-streams",
        "caughtup: Streams applications",
        "Copies of tasks and how they catch up, rebalances, and what the recommendation saves.",
        variables=(group_variable("caughtup_group_generation{CLUSTER}"),),
        marks=(REBALANCES, MOVEMENTS, RECOMMENDATIONS, STARTS),
        top=(*stats(OVERVIEW_PAGE, width=6), by_role(), *plans()),
        rows={
            "Lag of copies": lags(),
            "Copies that catch up": catching_up(),
            "Rebalances and decisions": _rebalances(),
            "Probing rebalances": _probing(),
        },
    )


def stats(links: Sequence[Link], width: int) -> tuple[Any, ...]:
    """Return the panels of what applications wait for now, one number each."""
    none = "0 * sum(caughtup_task_copies{GROUP})"
    results = 'caughtup_exact_decisions_total{GROUP,result="mismatch"}'
    return (
        stat(
            "Warm-ups",
            "Copies that are being built before their task moves.",
            f'sum(caughtup_task_copies{{GROUP,role="warmup"}}) or {none}',
            links,
            width=width,
        ),
        stat(
            "Restoring actives",
            "Tasks whose owner restores state before it processes: they stand still.",
            f'sum(caughtup_task_copies{{GROUP,role="restoring"}}) or {none}',
            links,
            alarm="orange",
            width=width,
        ),
        stat(
            "Probing rebalances due",
            "Groups whose probing rebalance should have happened.",
            "sum(caughtup_probing_rebalance_due{GROUP})",
            links,
            alarm="orange",
            width=width,
        ),
        stat(
            "Mismatches, 24 h",
            "Decisions of leaders that differ from Kafka's own assignor with every input known.",
            f"sum(({results} unless {results} offset 24h) or increase({results}[24h]))"
            " or 0 * sum(caughtup_exact_decisions_total{GROUP})",
            links,
            alarm="red",
            width=width,
        ),
    )


def plans() -> tuple[Any, ...]:
    """Return the panels of the costs of balancing: with Kafka's assignor, and as recommended."""
    return (
        lines(
            "Copies to build until balanced",
            "By Kafka's own assignor, and as recommended.",
            ("sum by (plan) (caughtup_plan_copies{GROUP})", "{{plan}}"),
            links=OVERVIEW_PAGE,
        ),
        lines(
            "Time until balanced",
            "Of the group that takes longest, at one probing interval a rebalance.",
            ("max by (plan) (caughtup_plan_seconds{GROUP})", "{{plan}}"),
            links=OVERVIEW_PAGE,
            unit="s",
        ),
    )


def _rebalances() -> tuple[Any, ...]:
    grown = "sum by (%s) (increase(caughtup_%s_total{GROUP}[$__rate_interval]))"
    members = "sum by (group) (caughtup_group_members{GROUP})"
    return (
        lines(
            "Rebalances",
            "Generations seen, in each interval.",
            (grown % ("group", "rebalances"), "{{group}}"),
            links=STREAMS,
        ),
        lines(
            "Members of applications",
            "Members of each Streams group; a jagged line means that members join and leave often.",
            (f"{members} and on (group) caughtup_group_generation{{GROUP}}", "{{group}}"),
            links=STREAMS,
        ),
        lines(
            "Decisions recomputed",
            "By result: match, consistent, mismatch or undetermined.",
            (grown % ("result", "exact_decisions"), "{{result}}"),
            links=OVERVIEW_PAGE,
            colors=_RESULTS,
        ),
        lines(
            "Movements recommended",
            "By kind, in each interval.",
            (grown % ("kind", "movements"), "{{kind}}"),
            links=OVERVIEW_PAGE,
            width=12,
        ),
        lines(
            "Recommendations published",
            "By group, in each interval.",
            (grown % ("group", "recommendations_published"), "{{group}}"),
            links=STREAMS,
            width=12,
        ),
    )


def _probing() -> tuple[Any, ...]:
    seen = "sum(increase(caughtup_probing_rebalances%s_total{GROUP}[$__rate_interval]))"
    return (
        lines(
            "Probing rebalances",
            "Seen, and those that found nothing newly caught up.",
            (seen % "", "seen"),
            (seen % "_needless", "needless"),
            ("sum(caughtup_probing_rebalance_worthwhile{GROUP})", "worthwhile now"),
            links=OVERVIEW_PAGE,
            width=12,
        ),
        lines(
            "Next probing rebalance",
            "Seconds until it is due; below zero it is overdue. Below the dashed line, twice "
            "probing.rebalance.interval.ms, the alert fires.",
            (
                "caughtup_probing_rebalance_due_timestamp_seconds{GROUP} - time()",
                "{{group}}",
            ),
            (
                "-2 * min(caughtup_probing_rebalance_interval_seconds{GROUP})",
                "two intervals late",
            ),
            links=STREAMS,
            unit="s",
            least=None,
            overrides={"two intervals late": LIMIT},
            width=12,
        ),
    )
