"""What there is of a cluster: its groups, its Streams applications, its reassignments.

``state`` is what the page shows (``/api/state``), whoever made it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from msgspec import convert

from caughtup.agents.cli.lag.rows import GROUP_COLUMNS, ORDERS, group_rows
from caughtup.agents.cli.top.connect import connect
from caughtup.agents.cli.top.tables import DECISION_COLOURS, Line, Table
from caughtup.agents.columns import REASSIGNMENT_COLUMNS, Column
from caughtup.models.durations import duration
from caughtup.models.records.reassignment_lines import Reassignment
from caughtup.models.verdicts import REASSIGNMENTS

APPLICATION_COLUMNS = (
    Column("APPLICATION", name=True),
    Column("CLIENTS", right=True, order=1),
    Column("TASKS", right=True),
    Column("BEHIND", right=True),
    Column("EXACT", colours=DECISION_COLOURS),
    Column("PROBING IN", right=True, order=2),
    Column("GENERATION", right=True, order=0),
)


def groups(state: Mapping[str, Any]) -> Table:
    """Return all groups, the worst first."""
    lines = [
        Line((row.name[0],), row.cells, {order: row.rank(order) for order in ORDERS})
        for row in group_rows(state["groups"])
    ]
    return Table("groups", GROUP_COLUMNS, lines, ORDERS, "no groups on this cluster")


def applications(state: Mapping[str, Any]) -> Table:
    """Return the Streams applications: how many copies of tasks are yet to catch up."""
    lines = []
    for view in state["applications"]:
        behind = sum(_is_behind(copy) for task in view["tasks"] for copy in task["copies"])
        due = view["probing"].get("due_ms")
        cells = (
            view["group"],
            str(len(view["clients"])),
            str(len(view["tasks"])),
            str(behind),
            view.get("exact", {}).get("result", "not yet"),
            "" if due is None else duration(max(0, due - state["now_ms"]) / 1000),
            str(view["generation"]),
        )
        ranks = {"name": 0, "behind": -behind}
        lines.append(Line((view["group"],), cells, ranks))
    return Table(
        "applications",
        APPLICATION_COLUMNS,
        lines,
        ("name", "behind"),
        "no Kafka Streams application whose tasks a leader assigns",
    )


def _is_behind(copy: Mapping[str, Any]) -> bool:
    return bool(copy.get("verdict", "caught_up") != "caught_up")


def reassignments(state: Mapping[str, Any]) -> Table:
    """Return what is in movement, the worst first; the page has no more than the worst."""
    lines = []
    for row in rows_of(state):
        left = row.offsets_remaining if row.bytes_remaining is None else row.bytes_remaining
        ranks = {
            "verdict": (-REASSIGNMENTS.severity(row.verdict), -(row.eta or 0.0)),
            "left": inf if left is None else -left,
            "name": 0,
        }
        cells = tuple(column.cell(row) for column in REASSIGNMENT_COLUMNS)
        lines.append(Line((row.topic, row.partition), cells, ranks))
    counts = state.get("reassignment_counts", {})
    more = sum(counts.values()) - len(lines)
    about = [f"{more:,} more, none of them worse"] if more > 0 else []
    about += [f"not known: {what}" for what in state.get("reassignments_missing", ())]
    about += [
        f"orphaned throttle on the {one['kind']} {one['name']}: caughtup reassignments"
        for one in state.get("throttles", ())
    ]
    return Table(
        "reassignments",
        REASSIGNMENT_COLUMNS,
        lines,
        ("verdict", "left", "name"),
        "no partition is in movement",
        tuple(about),
    )


def rows_of(state: Mapping[str, Any]) -> list[Reassignment]:
    """Return the reassignments that the page shows."""
    return convert(state["reassignments"], list[Reassignment])


#: What there is to choose from, in this order.
OVERVIEWS: tuple[Callable[[Mapping[str, Any]], Table], ...] = (
    groups,
    applications,
    reassignments,
    connect,
)
