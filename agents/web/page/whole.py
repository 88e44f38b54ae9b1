"""The whole cluster as one value: ``/api/state``, and what ``caughtup top`` shows."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from caughtup.agents.process.health import Health
from caughtup.agents.web.page.head import Everything, encoded, head_of, left_out, movements
from caughtup.agents.web.page.parts import connect_views
from caughtup.models.pipeline_progress import StreamLine, stream_lines
from caughtup.models.shown.applications import ApplicationView, application_view
from caughtup.models.shown.connect_lines import ConnectView
from caughtup.models.shown.groups import GroupLine, group_line
from caughtup.models.state.cluster import ClusterState

SCHEMA = 1


class WholeView(Everything, kw_only=True):
    """Every group, application, Connect group and stream; ``groups_not_told``: those left out."""

    groups: Sequence[GroupLine]
    groups_not_told: Mapping[str, int] = {}
    applications: Sequence[ApplicationView]
    connect: Sequence[ConnectView] = ()
    streams: Sequence[StreamLine] = ()


def whole_steps(
    state: ClusterState, health: Health, now_ms: int, limited: int = 0
) -> Generator[None, None, WholeView]:
    """Return the whole cluster at a moment (ms), to be encoded as JSON.

    ``limited``: the groups of which metrics have fewer series.

    In steps: others may have their turn between two, and change the state. What can't be shown is
    left out, and among the faults.
    """
    groups, applications = [], []
    for group in state.group_names():
        with state.faults.isolated("page", group, now_ms):
            groups.append(encoded(group_line(state, group)))
        yield
    for group in sorted(state.applications):
        with state.faults.isolated("page", group, now_ms):
            application = state.applications.get(group)
            if application is not None:
                view = yield from application_view(state, group, application, now_ms)
                applications.append(encoded(view))
        yield
    connect = yield from connect_views(state, now_ms)
    return head_of(
        WholeView,
        state,
        health,
        now_ms,
        schema=SCHEMA,
        **left_out(state),
        groups=groups,
        groups_not_told={**state.watching.counts(), "limited": limited},
        applications=applications,
        connect=connect,
        streams=stream_lines(state.pipeline, now_ms),
        **movements(state, now_ms),
    )
