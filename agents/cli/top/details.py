"""What is opened: a group's partitions, an application's tasks, a reassignment's copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from msgspec import convert

from caughtup.agents.cli.lag.rows import ORDERS, PARTITION_COLUMNS, partition_rows
from caughtup.agents.cli.reassignments.table import explained, heading
from caughtup.agents.cli.top.connect import work
from caughtup.agents.cli.top.overviews import rows_of
from caughtup.agents.cli.top.tables import Line, Table
from caughtup.agents.columns import Column
from caughtup.models.durations import duration
from caughtup.models.ids import TopicPartition
from caughtup.models.records.reassignment_lines import EndedReassignment

_COPY_COLOURS = {
    "caught_up": "green",
    **dict.fromkeys(("warming", "waiting"), "yellow"),
    **dict.fromkeys(("stranded", "flapping", "stalled", "chasing"), "red"),
}
TASK_COLUMNS = (
    Column("TASK"),
    Column("CLIENT", name=True),
    Column("ROLE"),
    Column("LAG", right=True),
    Column("FROM", order=0),
    Column("STATE", colours=_COPY_COLOURS),
    Column("ENDS IN", right=True, order=1),
)
COPY_COLUMNS = (
    Column("BROKER", right=True),
    Column("ROLE"),
    Column("IN SYNC"),
    Column("LOG END", right=True),
    Column("SHARE", right=True),
    Column("BROKER IS", order=0),
)


def group(state: Mapping[str, Any], key: Sequence[Any], lines: Sequence[Any] | None) -> Table:
    """Return a group's partitions. ``lines``: those of its lag, None before they are there."""
    (name,) = key
    known = next((one for one in state["groups"] if one["group"] == name), None)
    rows = [] if lines is None else partition_rows(lines)
    found = [
        Line(row.name[1:], row.cells[1:], {order: row.rank(order) for order in ORDERS})
        for row in rows
    ]
    nothing = "no partitions" if lines is not None else "asking for its partitions"
    if known is None:
        nothing = "this group is gone"
    about = _group_words(known) if known is not None else ()
    return Table(name, PARTITION_COLUMNS[1:], found, ORDERS, nothing, about)


def _group_words(known: Mapping[str, Any]) -> tuple[str, ...]:
    status, why = known.get("status", "unknown"), known.get("why")
    return (f"{status}: {why}" if why else status,)


def application(state: Mapping[str, Any], key: Sequence[Any], lines: object = None) -> Table:
    """Return every copy of every task of an application."""
    (name,) = key
    view = next((one for one in state["applications"] if one["group"] == name), None)
    if view is None:
        return Table(name, TASK_COLUMNS, [], ("task",), "this application is gone")
    clients = {client["process"]: client["name"] for client in view["clients"]}
    found = []
    for number, task in enumerate(view["tasks"]):
        for copy in task["copies"]:
            eta, lag = copy.get("eta_seconds"), copy.get("lag")
            cells = (
                task["task"],
                clients.get(copy["process"], copy["process"]),
                copy["role"],
                "" if lag is None else f"{lag}",
                copy.get("provenance", ""),
                copy.get("verdict", ""),
                "" if eta is None else duration(eta),
            )
            ranks = {
                "task": number,
                "lag": inf if lag is None else -lag,
                "state": copy.get("verdict") in (None, "caught_up"),
            }
            found.append(Line((task["task"], copy["process"]), cells, ranks))
    about = tuple(_application_words(view, state["now_ms"]))
    return Table(name, TASK_COLUMNS, found, ("task", "lag", "state"), "no tasks", about)


def _application_words(view: Mapping[str, Any], now_ms: int) -> list[str]:
    exact, probing = view.get("exact"), view["probing"]
    said = [f"generation {view['generation']}"]
    if exact is not None:
        why = f" ({exact['why']})" if exact.get("why") else ""
        said[0] += f": {exact['result']} with {exact['assignor']}{why}"
    if (due := probing.get("due_ms")) is not None:
        said.append(f"next probing rebalance in {duration(max(0, due - now_ms) / 1000)}")
        if probing.get("why"):
            said[1] += f": {probing['why']}"
    return said


def reassignment(state: Mapping[str, Any], key: Sequence[Any], lines: object = None) -> Table:
    """Return the copies of a partition in movement, and why it has its verdict."""
    topic, partition = key
    name = f"{topic}-{partition}"
    partition_of = TopicPartition(topic, partition)
    row = next((r for r in rows_of(state) if r.topic_partition == partition_of), None)
    if row is None:
        ended = [
            f"{one.outcome} after {duration(one.seconds)}"
            for one in convert(state.get("recent_reassignments", ()), list[EndedReassignment])
            if one.topic_partition == partition_of
        ]
        nothing = "no longer in movement"
        return Table(name, COPY_COLUMNS, [], ("broker",), ": ".join([nothing, *ended[:1]]))
    found = []
    for number, copy in enumerate(row.copies or ()):
        trouble = {
            "away": copy.away,
            "without this replica": copy.missing,
            "silent": copy.unanswered,
        }
        cells = (
            str(copy.broker),
            copy.role,
            "yes" if copy.in_sync else "no",
            "" if copy.log_end is None else str(copy.log_end),
            "" if copy.share is None else f"{copy.share:.0%}",
            ", ".join(word for word, holds in trouble.items() if holds),
        )
        found.append(Line((copy.broker,), cells, {"broker": number}))
    about = (heading(row), *explained(row))
    return Table(name, COPY_COLUMNS, found, ("broker",), "no copies", about)


#: How a line of each of ``overviews.OVERVIEWS`` is opened, in the same order.
DETAILS = (group, application, reassignment, work)
