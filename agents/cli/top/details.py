"""What is opened: a group's partitions, an application's tasks, a reassignment's copies."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from caughtup.agents.cli.lag.rows import ORDERS, partition_rows
from caughtup.agents.cli.reassignments.table import explained, heading
from caughtup.agents.cli.top.connect import work
from caughtup.agents.cli.top.tables import Line, TopTable
from caughtup.agents.columns import (
    COPY_COLUMNS,
    COPY_VERDICT_COLUMNS,
    PARTITION_COLUMNS,
    REPLICA_COLUMNS,
    cells,
)
from caughtup.agents.web.page.parts import WholeView
from caughtup.models.durations import duration
from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import Absent
from caughtup.models.shown.applications import ApplicationView
from caughtup.models.shown.groups import GroupLine
from caughtup.models.shown.lag import Line as LagLine
from caughtup.models.verdicts import LAG

Key = Sequence[str | int]
#: A copy's columns but for its task and client, which stand before them, and its group.
_COPY_COLUMNS = (*COPY_COLUMNS[3:], *COPY_VERDICT_COLUMNS)
TASK_COLUMNS = (*COPY_COLUMNS[1:], *COPY_VERDICT_COLUMNS)


def group(state: WholeView, key: Key, lines: Sequence[LagLine] | None) -> TopTable:
    """Return a group's partitions. ``lines``: those of its lag, None before they are there."""
    name = str(key[0])
    known = next((one for one in state.groups if one.group == name), None)
    rows = [] if lines is None else partition_rows(lines)
    columns = PARTITION_COLUMNS[1:]
    found = [
        Line(row.name[1:], cells(columns, row.line), {order: row.rank(order) for order in ORDERS})
        for row in rows
    ]
    nothing = "no partitions" if lines is not None else "asking for its partitions"
    if known is None:
        nothing = "this group is gone"
    about = () if known is None else (_about_group(known),)
    return TopTable(name, columns, found, ORDERS, nothing, about)


def _about_group(known: GroupLine) -> str:
    status = known.status or LAG.unassessed
    return f"{status}: {known.why}" if known.why else status


def application(state: WholeView, key: Key, lines: object = None) -> TopTable:
    """Return every copy of every task of an application."""
    name = str(key[0])
    view = next((one for one in state.applications if one.group == name), None)
    if view is None:
        return TopTable(name, TASK_COLUMNS, [], ("task",), "this application is gone")
    clients = {client.process: client.name for client in view.clients}
    found = []
    for number, task in enumerate(view.tasks):
        for copy in task.copies:
            client = clients.get(copy.process, copy.process)
            ranks = {
                "task": number,
                "lag": inf if copy.lag is None else -copy.lag,
                "state": copy.verdict in (None, "caught_up"),
            }
            row = (task.task, client, *cells(_COPY_COLUMNS, copy))
            found.append(Line((task.task, copy.process), row, ranks))
    about = tuple(_about_application(view, state.now_ms))
    return TopTable(name, TASK_COLUMNS, found, ("task", "lag", "state"), "no tasks", about)


def _about_application(view: ApplicationView, now_ms: int) -> list[str]:
    exact, probing = view.exact, view.probing
    about = [f"generation {view.generation}"]
    if not isinstance(exact, Absent):
        why = f" ({exact.why})" if exact.why else ""
        about[0] += f": {exact.result} with {exact.assignor}{why}"
    if (due := probing.due_ms) is not None:
        about.append(f"next probing rebalance in {duration(max(0, due - now_ms) / 1000)}")
        if probing.why:
            about[1] += f": {probing.why}"
    return about


def reassignment(state: WholeView, key: Key, lines: object = None) -> TopTable:
    """Return the copies of a partition in movement, and why it has its verdict."""
    partition = TopicPartition(str(key[0]), int(key[1]))
    row = next((one for one in state.reassignments if one.topic_partition == partition), None)
    if row is None:
        ended = [
            f"{one.outcome} after {duration(one.seconds)}"
            for one in state.recent_reassignments
            if one.topic_partition == partition
        ]
        nothing = ": ".join(["no longer in movement", *ended[:1]])
        return TopTable(str(partition), REPLICA_COLUMNS, [], ("broker",), nothing)
    found = [
        Line((copy.broker,), cells(REPLICA_COLUMNS, copy), {"broker": number})
        for number, copy in enumerate(row.copies or ())
    ]
    about = (heading(row), *explained(row))
    return TopTable(str(partition), REPLICA_COLUMNS, found, ("broker",), "no copies", about)


#: How a line of each of ``overviews.OVERVIEWS`` is opened, in the same order.
DETAILS = (group, application, reassignment, work)
