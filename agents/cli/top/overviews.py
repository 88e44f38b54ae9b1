"""What there is of a cluster: groups, Streams applications, reassignments, Connect groups."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from caughtup.agents.cli.lag.rows import ORDERS, group_rows
from caughtup.agents.cli.top.connect import connect
from caughtup.agents.cli.top.tables import Line, TopTable
from caughtup.agents.columns import (
    APPLICATION_COLUMNS,
    GROUP_COLUMNS,
    REASSIGNMENT_COLUMNS,
    cells,
)
from caughtup.agents.web.page.parts import WholeView
from caughtup.models.verdicts import REASSIGNMENTS


def groups(state: WholeView) -> TopTable:
    """Return all groups, the worst first."""
    lines = [
        Line(
            (row.name[0],),
            cells(GROUP_COLUMNS, row.line),
            {order: row.rank(order) for order in ORDERS},
        )
        for row in group_rows(state.groups)
    ]
    return TopTable("groups", GROUP_COLUMNS, lines, ORDERS, "no groups on this cluster")


def applications(state: WholeView) -> TopTable:
    """Return the Streams applications: how many copies of tasks are yet to catch up."""
    lines = [
        Line(
            (view.group,),
            cells(APPLICATION_COLUMNS, view, state.now_ms),
            {"name": 0, "behind": -view.behind},
        )
        for view in state.applications
    ]
    return TopTable(
        "applications",
        APPLICATION_COLUMNS,
        lines,
        ("name", "behind"),
        "no Kafka Streams application whose tasks a leader assigns",
    )


def reassignments(state: WholeView) -> TopTable:
    """Return what is in movement, the worst first; the page has no more than the worst."""
    lines = []
    for row in state.reassignments:
        left = row.offsets_remaining if row.bytes_remaining is None else row.bytes_remaining
        ranks = {
            "verdict": (-REASSIGNMENTS.severity(row.verdict), -(row.eta or 0.0)),
            "left": inf if left is None else -left,
            "name": 0,
        }
        lines.append(Line((row.topic, row.partition), cells(REASSIGNMENT_COLUMNS, row), ranks))
    more = sum(state.reassignment_counts.values()) - len(lines)
    about = [f"{more:,} more, none of them worse"] if more > 0 else []
    about += [f"not known: {what}" for what in state.reassignments_missing]
    about += [
        f"orphaned throttle on the {one.kind} {one.name}: caughtup reassignments"
        for one in state.throttles
    ]
    return TopTable(
        "reassignments",
        REASSIGNMENT_COLUMNS,
        lines,
        ("verdict", "left", "name"),
        "no partition is in movement",
        tuple(about),
    )


#: What there is to choose from, in this order.
OVERVIEWS: tuple[Callable[[WholeView], TopTable], ...] = (
    groups,
    applications,
    reassignments,
    connect,
)
