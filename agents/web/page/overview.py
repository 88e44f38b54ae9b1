"""The overview of the page: a row for each group, the worst first, and recent events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence

from caughtup.agents.process.health import Health
from caughtup.agents.web.page.head import (
    HeadWithFailures,
    encoded,
    failure_fields,
    reassignment_fields,
    view_with_head,
)
from caughtup.models.pipeline_progress import StreamLine, stream_lines
from caughtup.models.recent.happenings import Happening
from caughtup.models.records.fields import Part, extended
from caughtup.models.shown.applications import ChangeLine, change_line, pending_movements
from caughtup.models.shown.connect import connector_lines, unassigned_lines
from caughtup.models.shown.groups import GroupLine, KeptGroupLines, group_rank, with_since
from caughtup.models.state.cluster import ClusterState
from caughtup.models.verdicts import LAG

#: The most groups in one answer, the worst; others are counted, and found by name.
GROUPS_SHOWN = 2_000
#: The most events.
FEED_SHOWN = 100
#: The most reassignments and samples of a group's lag, and the samples that make one: a minute's.
_REASSIGNMENTS_SHOWN, _SAMPLES, _EACH = 10, 30, 6


class ApplicationSummary(Part, omit_defaults=True):
    """A group's tasks and copies by role; for a classic group its clients and its last decision.

    ``movements`` is the number of recommended movements that are still to be made.
    """

    tasks: int
    copies: dict[str, int]
    clients: int | None = None
    probing_due_ms: int | None = None
    change: ChangeLine | None = None
    result: str | None = None
    movements: int | None = None


class ConnectSummary(Part):
    """The figures of a Connect group."""

    workers: int
    connectors: int
    unassigned: int
    contradictions: int
    result: str


class GroupRow(GroupLine, kw_only=True):
    """A group, its lag over the last half hour (``recent``, one a minute), and its kind."""

    recent: list[float | None] | None = None
    application: ApplicationSummary | None = None
    connect: ConnectSummary | None = None


class OverviewView(HeadWithFailures, kw_only=True):
    """The worst groups, the number of others, and the number of each verdict."""

    groups: Sequence[GroupRow]
    groups_more: int
    statuses: Mapping[str, int]
    groups_not_told: Mapping[str, int]
    streams: Sequence[StreamLine]
    feed: Sequence[Happening]


def overview_steps(
    state: ClusterState,
    health: Health,
    now_ms: int,
    find: str = "",
    limited: int = 0,
    lines: KeptGroupLines | None = None,
) -> Generator[None, None, OverviewView]:
    """Return the groups whose names contain ``find``, yielding to other work between steps.

    ``limited`` is the number of groups with fewer series in metrics. ``lines`` keeps groups' lines
    from one overview to the next. A group that fails is left out.
    """
    lines = KeptGroupLines(state) if lines is None else lines
    wanted, rows = find.casefold(), []
    groups = state.group_names()
    lines.keep_only(set(groups))
    for group in groups:
        if wanted in group.casefold():
            with state.faults.isolated("page", group, now_ms):
                rows.append(lines.of(group))
            yield
    statuses = Counter(row.status or LAG.unassessed for row in rows)
    rows.sort(key=group_rank)
    shown = []
    for row in rows[:GROUPS_SHOWN]:
        with state.faults.isolated("page", row.group, now_ms):
            shown.append(encoded(_row(state, row, now_ms)))
        yield
    not_told = {**state.watching.counts(), "limited": limited}
    return view_with_head(
        OverviewView,
        state,
        health,
        now_ms,
        groups=shown,
        groups_more=len(rows) - len(rows[:GROUPS_SHOWN]),
        statuses={status: statuses[status] for status in LAG.words if statuses[status]},
        groups_not_told=not_told,
        streams=stream_lines(state.pipeline, now_ms),
        feed=state.recent.happenings.newest(FEED_SHOWN),
        **reassignment_fields(state, now_ms, _REASSIGNMENTS_SHOWN),
        **failure_fields(state),
    )


def _row(state: ClusterState, line: GroupLine, now_ms: int) -> GroupRow:
    series = state.recent.series(line.group)
    return extended(
        GroupRow,
        with_since(state, line),
        recent=None if series is None else series.newest("lag", _SAMPLES, each=_EACH),
        application=_application(state, line.group),
        connect=_connect(state, line.group, now_ms),
    )


def _application(state: ClusterState, group: str) -> ApplicationSummary | None:
    rows = state.task_rows(group)
    application = state.applications.get(group)
    if application is None and not rows:
        return None
    summary = ApplicationSummary(
        len({row.task for row in rows}), dict(sorted(Counter(row.role for row in rows).items()))
    )
    if application is None:
        return summary
    summary.clients = len(application.newest.clients)
    if (due := application.newest.next_rebalance()) is not None:
        summary.probing_due_ms = due[0]
    if application.change is not None:
        summary.change = change_line(application.change)
    if (decided := application.decided) is not None:
        summary.result = decided.exact.leader.result
        if decided.recommendation is not None:
            summary.movements = len(pending_movements(decided, rows))
    return summary


def _connect(state: ClusterState, group: str, now_ms: int) -> ConnectSummary | None:
    known = state.connect.groups.get(group)
    if known is None or known.watch is None:
        return None
    watch = known.watch
    _, topics = state.connect.topics_of(group)
    return ConnectSummary(
        workers=len(watch.generation.workers) if known.empty_since_ms is None else 0,
        connectors=len(connector_lines(state, watch, topics)),
        unassigned=len(unassigned_lines(known, topics)),
        contradictions=sum(1 for _ in state.connect.contradictions(group, now_ms)),
        result=watch.comparison.result,
    )
