"""The page's entrance: every group in a row, the worst first, and what happened of late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import Any

from caughtup.agents.process.health import Health
from caughtup.agents.views.applications import change_fields
from caughtup.agents.views.connect import connector_rows, unassigned_rows
from caughtup.agents.views.groups import group_summary
from caughtup.agents.views.page.head import encoded, head_fields, left_out
from caughtup.agents.views.page.movements import reassignment_view
from caughtup.agents.views.page.recent import happening_fields, since_fields
from caughtup.agents.views.pipeline import progress_rows
from caughtup.models.state.cluster import ClusterState
from caughtup.models.verdicts import LAG

#: Groups in one answer, the worst; others are counted, and found by their name.
GROUPS_SHOWN = 2_000
#: Reassignments, happenings, and samples of a group's lag: one a minute of the last half hour.
_REASSIGNMENTS_SHOWN, _FEED_SHOWN, _SAMPLES, _EACH = 10, 100, 30, 6

_Row = dict[str, Any]


def overview_steps(
    state: ClusterState, health: Health, now_ms: int, find: str = "", limited: int = 0
) -> Generator[None, None, _Row]:
    """Describe all groups whose name holds ``find``, in steps between which others have their turn.

    ``limited``: the groups that metrics tell of less finely. A group that fails is left out.
    """
    wanted, rows = find.casefold(), []
    for group in state.group_names():
        if wanted in group.casefold():
            with state.faults.isolated("page", group, now_ms):
                rows.append(group_summary(state, group))
            yield
    statuses = Counter(row.get("status", "unknown") for row in rows)
    rows.sort(key=_worst_first)
    shown = []
    for row in rows[:GROUPS_SHOWN]:
        with state.faults.isolated("page", row["group"], now_ms):
            shown.append(encoded(row | _more(state, row["group"], now_ms)))
        yield
    happened = state.recent.happenings.newest(_FEED_SHOWN)
    return {
        **head_fields(state, health, now_ms),
        "groups": shown,
        "groups_more": len(rows) - len(rows[:GROUPS_SHOWN]),
        "statuses": {status: statuses[status] for status in LAG.words if statuses[status]},
        "groups_not_told": {**state.watching.counts(), "limited": limited},
        "streams": progress_rows(state.pipeline, now_ms),
        "feed": [happening_fields(one) for one in happened],
        **reassignment_view(state, now_ms, _REASSIGNMENTS_SHOWN),
        **left_out(state),
    }


def _worst_first(row: _Row) -> tuple[int, int, str]:
    lag: int = row.get("lag") or row.get("lag_at_least") or 0
    return -LAG.severity(row.get("status")), -lag, row["group"]


def _more(state: ClusterState, group: str, now_ms: int) -> _Row:
    """Return what a row has beyond the group's figures: of what it is, and how its lag went."""
    more: _Row = since_fields(state, group)
    series = state.recent.series(group)
    if series is not None:
        more["recent"] = series.newest("lag", _SAMPLES, each=_EACH)
    if (application := _application(state, group)) is not None:
        more["application"] = application
    if (connect := _connect(state, group, now_ms)) is not None:
        more["connect"] = connect
    return more


def _application(state: ClusterState, group: str) -> _Row | None:
    rows = state.task_rows(group)
    application = state.applications.get(group)
    if application is None and not rows:
        return None
    described: _Row = {
        "tasks": len({row.task for row in rows}),
        "copies": dict(sorted(Counter(row.role for row in rows).items())),
    }
    if application is None:
        return described
    described["clients"] = len(application.newest.clients)
    if (due := application.newest.next_rebalance()) is not None:
        described["probing_due_ms"] = due[0]
    if application.change is not None:
        described["change"] = change_fields(application.change)
    if (decided := application.decided) is not None:
        described["result"] = decided.exact.leader.result
        if decided.recommendation is not None:
            described["movements"] = len(decided.recommendation.movements)
    return described


def _connect(state: ClusterState, group: str, now_ms: int) -> _Row | None:
    known = state.connect.groups.get(group)
    if known is None or known.watch is None:
        return None
    watch = known.watch
    _, topics = state.connect.topics_of(group)
    return {
        "workers": len(watch.generation.workers) if known.empty_since_ms is None else 0,
        "connectors": len(connector_rows(state, watch, topics)),
        "unassigned": len(unassigned_rows(known, topics)),
        "contradictions": sum(1 for _ in state.connect.contradictions(group, now_ms)),
        "result": watch.again.result,
    }
