"""The dashboard of Connect groups: workers, unassigned work, contradictions, storms, connectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scripts.dashboards.layout import CONNECT_REBALANCES, STARTS, group_variable, made
from scripts.dashboards.links import CONNECT, CONNECT_PAGE, Link
from scripts.dashboards.panels import lines, stat, table


def connect() -> str:
    """Return the dashboard of Connect groups as JSON."""
    return made(
        "caughtup-connect",
        "caughtup: Connect",
        "Which worker runs which connectors and tasks, what no worker runs, and what causes rebalances.",
        variables=(group_variable("caughtup_connect_generation{CLUSTER}"),),
        marks=(CONNECT_REBALANCES, STARTS),
        top=(contradictions(CONNECT_PAGE, width=6), *_stats(), *wrong()),
        rows={"Who runs what": _who(), "Generations": _generations(), "Connectors": _connectors()},
    )


def contradictions(links: Sequence[Link], width: int) -> Any:
    """Return the panel that counts connectors and tasks with contradictions."""
    return stat(
        "Contradictions",
        "Connectors and tasks whose status contradicts their assignment, and whose delay is over.",
        "sum(caughtup_connect_contradictions{GROUP})",
        links,
        alarm="red",
        width=width,
    )


def _stats() -> tuple[Any, ...]:
    mismatches = 'caughtup_connect_decisions_total{GROUP,result="mismatch"}'
    return (
        stat(
            "Unassigned",
            "Connectors and tasks that are configured and assigned to no worker; most of them "
            "only wait for a delay to end.",
            "sum(caughtup_connect_unassigned{GROUP})",
            CONNECT_PAGE,
            width=6,
        ),
        stat(
            "Groups in a storm",
            "Groups that rebalance again and again because of one worker or of the configuration.",
            "count(caughtup_connect_storm_generations{GROUP})",
            CONNECT_PAGE,
            alarm="red",
            width=6,
        ),
        stat(
            "Mismatches, 24 h",
            "Generations that a leader decided differently from Kafka's own assignor.",
            f"sum(increase({mismatches}[24h]))",
            CONNECT_PAGE,
            alarm="red",
            width=6,
        ),
    )


def wrong() -> tuple[Any, ...]:
    """Return the panel of the connectors and tasks with contradictions, and their number by kind."""
    return (
        table(
            "Contradictions",
            "Each connector and task with a contradiction: failed, zombie, unassigned, not running, without tasks.",
            "sum by (group, kind, connector, task, worker) (caughtup_connect_contradiction{GROUP})",
            columns={
                "group": "Group",
                "kind": "Kind",
                "connector": "Connector",
                "task": "Task",
                "worker": "Worker",
            },
            links=CONNECT,
            width=16,
        ),
        lines(
            "Contradictions by kind",
            "How many there are of each kind.",
            (
                "sum by (group, kind) (caughtup_connect_contradictions{GROUP}) > 0",
                "{{group}} {{kind}}",
            ),
            links=CONNECT,
        ),
    )


def _who() -> tuple[Any, ...]:
    return (
        lines(
            "Tasks by worker",
            "Connectors and tasks that each worker is assigned.",
            ("caughtup_connect_assigned{GROUP}", "{{group}} {{worker}} {{kind}}"),
            links=CONNECT,
            width=12,
        ),
        lines(
            "Unassigned, and workers",
            "Connectors and tasks that no worker is assigned, and the number of workers.",
            ("caughtup_connect_unassigned{GROUP}", "{{group}} unassigned"),
            ("caughtup_connect_workers{GROUP}", "{{group}} workers"),
            links=CONNECT,
            width=12,
        ),
        lines(
            "Until the delay ends",
            "Seconds until the leader assigns the work of a worker that left to another one.",
            (
                "caughtup_connect_delay_ends_timestamp_seconds{GROUP} - time() > 0",
                "{{group}}",
            ),
            links=CONNECT,
            unit="s",
        ),
        lines(
            "Assigned unevenly",
            "Seconds for which a stable group has had work assigned unevenly.",
            ("caughtup_connect_uneven_seconds{GROUP}", "{{group}}"),
            links=CONNECT,
            unit="s",
        ),
        lines(
            "Storms",
            "Generations within ten minutes, and who causes them.",
            (
                "caughtup_connect_storm_generations{GROUP}",
                "{{group}} {{cause}} {{culprit}}",
            ),
            links=CONNECT,
        ),
    )


def _generations() -> tuple[Any, ...]:
    return (
        lines(
            "Rebalances",
            "Generations in a minute.",
            ("changes(caughtup_connect_generation{GROUP}[1m])", "{{group}}"),
            links=CONNECT,
        ),
        lines(
            "Compared with Kafka's assignor",
            "Whether Kafka's own assignor decides the same.",
            (
                "increase(caughtup_connect_decisions_total{GROUP}[$__rate_interval])",
                "{{group}} {{result}}",
            ),
            links=CONNECT,
        ),
        lines(
            "Groups that ceased",
            "Connect groups whose name another kind of group now has.",
            (
                "increase(caughtup_connect_groups_ceased_total{CLUSTER}[$__rate_interval])",
                "{{cluster}}",
            ),
            links=CONNECT_PAGE,
        ),
    )


def _connectors() -> tuple[Any, ...]:
    legend = "{{group}} {{connector}}"
    return (
        lines(
            "Tasks",
            "Tasks that each connector is configured with.",
            ("caughtup_connect_connector_tasks{GROUP}", legend),
            links=CONNECT,
        ),
        lines(
            "Lag of sinks",
            "Records that a sink's consumer group has yet to read.",
            ("caughtup_connect_connector_lag_records{GROUP}", legend),
            links=CONNECT,
        ),
        lines(
            "Age of sources' offsets",
            "Time since a source last stored an offset.",
            ("caughtup_connect_source_offset_age_seconds{GROUP}", legend),
            links=CONNECT,
            unit="s",
        ),
    )
