"""The whole cluster as one JSON object: ``/api/state``. Unknown figures are absent."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from caughtup.agents.process.health import Health
from caughtup.agents.views.applications import application_view
from caughtup.agents.views.groups import group_summary
from caughtup.agents.views.page.head import encoded, head_fields, left_out
from caughtup.agents.views.page.movements import reassignment_view
from caughtup.agents.views.page.parts import connect_views
from caughtup.agents.views.pipeline import progress_rows
from caughtup.models.state.cluster import ClusterState

SCHEMA = 1


def page_steps(
    state: ClusterState, health: Health, now_ms: int, limited: int = 0
) -> Generator[None, None, dict[str, Any]]:
    """Describe the whole cluster at a moment (ms), to be encoded as JSON.

    ``limited``: the groups that metrics tell of less finely than of others.

    In steps: others may have their turn between two, and change the state. What can't be described
    is left out, and among the faults.
    """
    groups, applications = [], []
    for group in state.group_names():
        with state.faults.isolated("page", group, now_ms):
            groups.append(encoded(group_summary(state, group)))
        yield
    for group in sorted(state.applications):
        with state.faults.isolated("page", group, now_ms):
            application = state.applications.get(group)
            if application is not None:
                view = yield from application_view(state, group, application, now_ms)
                applications.append(encoded(view))
        yield
    connect = yield from connect_views(state, now_ms)
    return {
        "schema": SCHEMA,
        **head_fields(state, health, now_ms),
        **left_out(state),
        "groups": groups,
        "groups_not_told": {**state.watching.counts(), "limited": limited},
        "applications": applications,
        "connect": connect,
        "streams": progress_rows(state.pipeline, now_ms),
        **reassignment_view(state, now_ms),
    }
