"""Panels of copies of tasks: roles, lags, and catching up."""

from __future__ import annotations

from typing import Any

from caughtup.models.verdicts import COPIES
from scripts.dashboards.links import OVERVIEW_PAGE, STREAMS
from scripts.dashboards.panels import LIMIT, RIGHT_SECONDS, lines, table

_ROLES = {"standby": "blue", "warmup": "orange", "restoring": "purple", "none": "text"}
_STATUSES = {term.word: term.chart for term in COPIES.terms}
_ACCEPTABLE = ("min(caughtup_acceptable_recovery_lag_records{GROUP})", "acceptable")


def by_role() -> Any:
    """Return the panel of the number of copies by role."""
    return lines(
        "Copies by role",
        "How many copies of tasks there are.",
        ("sum by (role) (caughtup_task_copies{GROUP})", "{{role}}"),
        links=OVERVIEW_PAGE,
        colors=_ROLES,
        stacked=True,
    )


def lags() -> tuple[Any, ...]:
    """Return the panels of copies' lags at rebalances."""
    return (
        lines(
            "Lag of copies by role, the furthest behind",
            "As of their clients' last rebalance. The dashed line is acceptable.recovery.lag, "
            "the smallest of the groups chosen.",
            ("max by (role) (caughtup_task_lag_records{GROUP})", "{{role}}"),
            _ACCEPTABLE,
            links=OVERVIEW_PAGE,
            colors=_ROLES,
            overrides={"acceptable": LIMIT},
            width=12,
        ),
        lines(
            "Warm-ups and restoring actives",
            "Offsets each has yet to restore. The dashed line is acceptable.recovery.lag, "
            "the smallest of the groups chosen.",
            (
                'topk(15, caughtup_task_lag_records{GROUP,role=~"warmup|restoring"})',
                "{{group}} {{task}} {{client_id}} {{role}}",
            ),
            _ACCEPTABLE,
            links=STREAMS,
            overrides={"acceptable": LIMIT},
            width=12,
        ),
        table(
            "Copies behind",
            "Copies with more lag than their group's acceptable.recovery.lag.",
            "caughtup_task_lag_records{GROUP} > on (cluster, group) group_left ()"
            " max by (cluster, group) (caughtup_acceptable_recovery_lag_records{GROUP})",
            columns={
                "group": "Group",
                "task": "Task",
                "client_id": "Client",
                "role": "Role",
                "Value": "Lag",
            },
            links=STREAMS,
            width=24,
        ),
    )


def catching_up() -> tuple[Any, ...]:
    """Return the panels of copies that catch up: verdicts, and ETAs."""
    verdicts = "sum by (cluster, group, client_id, task, status) (caughtup_task_status{GROUP})"
    columns = {
        "cluster": "Cluster",
        "group": "Group",
        "client_id": "Client",
        "task": "Task",
        "status": "Status",
    }
    return (
        lines(
            "Copies by status",
            "Verdicts on warm-ups, standbys and restoring actives.",
            ("sum by (status) (caughtup_task_status{GROUP})", "{{status}}"),
            links=OVERVIEW_PAGE,
            colors=_STATUSES,
            stacked=True,
        ),
        lines(
            "Time until caught up, the 10 copies with the longest",
            "At the current pace; copies that never catch up are left out.",
            (
                "topk(10, caughtup_task_catchup_eta_seconds{GROUP} < +Inf)",
                "{{group}} {{task}} {{client_id}}",
            ),
            links=STREAMS,
            unit="s",
        ),
        lines(
            "Who measured the rate",
            "Copies whose pace is known, by who measured it: the job on Spark, or the service "
            "itself from their own positions. And for how long Spark has been silent: after a "
            "minute and three of its triggers the service goes by its own.",
            ("sum by (source) (caughtup_catch_up_rates_copies{GROUP})", "{{source}}"),
            ("caughtup_catch_up_rates_age_seconds{CLUSTER}", "since Spark's last"),
            links=OVERVIEW_PAGE,
            overrides={"since Spark's last": RIGHT_SECONDS},
        ),
        table(
            "Copies and their verdicts",
            "Every copy that is to catch up: warming, caught up, waiting, chasing, stalled, "
            "flapping, or stranded: caught up while no rebalance comes.",
            f"{verdicts} > 0",
            columns=columns,
            links=STREAMS,
            width=24,
        ),
    )
