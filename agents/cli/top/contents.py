"""The tables of ``caughtup top``: four overviews, and the details of a line of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from caughtup.agents.cli.lag.rows import ORDERS, group_rows, partition_rows
from caughtup.agents.cli.reassignments.main import explained, heading
from caughtup.agents.cli.top.tables import Line, TopTable
from caughtup.agents.columns import (
    APPLICATION_COLUMNS,
    CONNECT_COLUMNS,
    COPY_COLUMNS,
    COPY_VERDICT_COLUMNS,
    GROUP_COLUMNS,
    ITEM_COLUMNS,
    PARTITION_COLUMNS,
    REASSIGNMENT_COLUMNS,
    REPLICA_COLUMNS,
    cells,
)
from caughtup.agents.web.page.parts import WholeView
from caughtup.models.durations import duration
from caughtup.models.ids import TopicPartition
from caughtup.models.records.fields import Absent, changed, or_none
from caughtup.models.shown.applications import ApplicationView
from caughtup.models.shown.connect_lines import ConnectView
from caughtup.models.shown.groups import GroupLine
from caughtup.models.shown.lag import Line as LagLine
from caughtup.models.verdicts import LAG, REASSIGNMENTS


def connect(state: WholeView) -> TopTable:
    """Return the Connect groups, by unassigned work."""
    lines = [
        Line(
            (view.group,),
            cells(CONNECT_COLUMNS, view),
            {"unassigned": (-len(view.unassigned), -len(view.contradictions)), "name": 0},
        )
        for view in state.connect
    ]
    orders = ("unassigned", "name")
    return TopTable("connect", CONNECT_COLUMNS, lines, orders, "no Connect group is known")


def work(state: WholeView, key: Sequence[str | int], lines: object = None) -> TopTable:
    """Return the connectors and tasks of a Connect group, with their workers."""
    name = str(key[0])
    view = next((one for one in state.connect if one.group == name), None)
    if view is None:
        return TopTable(name, ITEM_COLUMNS, [], ("name",), "this Connect group is gone")
    goes_to = {one.name: one.goes_to for one in view.unassigned}
    found = []
    for number, item in enumerate(view.items):
        ranks = {
            "name": number,
            "unassigned": bool(item.workers),
            "state": item.state != "FAILED",
        }
        row = cells(ITEM_COLUMNS, changed(item, goes_to=goes_to.get(item.name)))
        task = -1 if item.task is None else item.task
        found.append(Line((item.connector, task), row, ranks))
    orders = ("name", "unassigned", "state")
    about = tuple(_about(view, state.now_ms))
    return TopTable(name, ITEM_COLUMNS, found, orders, "no connectors", about)


def _about(view: ConnectView, now_ms: int) -> list[str]:
    why = f" ({view.why})" if view.why else ""
    about = [f"generation {view.generation}: {view.result}{why}"]
    if (at_ms := view.next_rebalance_ms) is not None:
        about[0] += f", next rebalance in {duration(max(0, at_ms - now_ms) / 1000)}"
    about += [f"{one.name}: {one.why}" for one in view.contradictions]
    return about


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
    """Return the Streams applications, with their numbers of copies that are behind."""
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
    """Return the reassignments, the worst first; the page's state has only the worst."""
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


#: The overviews, in the order of their keys.
OVERVIEWS: tuple[Callable[[WholeView], TopTable], ...] = (
    groups,
    applications,
    reassignments,
    connect,
)


Key = Sequence[str | int]
#: A copy's columns without its group.
TASK_COLUMNS = (*COPY_COLUMNS[1:], *COPY_VERDICT_COLUMNS)


def group(state: WholeView, key: Key, lines: Sequence[LagLine] | None) -> TopTable:
    """Return a group's partitions. ``lines`` are its lag lines, None until they are read."""
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
    found = []
    for number, task in enumerate(view.tasks):
        for copy in task.copies:
            lag = or_none(copy.lag)
            ranks = {
                "task": number,
                "lag": inf if lag is None else -lag,
                "state": or_none(copy.verdict) in (None, "caught_up"),
            }
            found.append(Line((copy.task, copy.process), cells(TASK_COLUMNS, copy), ranks))
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
    """Return the replicas of a partition in movement, and the reason of its verdict."""
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


#: The table of a line of each of OVERVIEWS.
DETAILS = (group, application, reassignment, work)
