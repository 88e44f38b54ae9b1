"""What the page shows, as JSON: ``/api/state``. Unknown figures are absent."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec

import caughtup
from caughtup.agents.process.health import Health
from caughtup.agents.views.applications import application_view
from caughtup.agents.views.connect_lines import connect_view
from caughtup.agents.views.copies import present
from caughtup.agents.views.groups import group_summary
from caughtup.agents.views.pipeline import progress_rows
from caughtup.agents.views.reassignment_lines import worst_first
from caughtup.agents.views.reassignments import (
    ended_reassignment,
    orphaned_throttle,
    page_reassignment,
    verdict_counts,
)
from caughtup.agents.views.spark import checkpoint_problems
from caughtup.models.state.cluster import ClusterState

SCHEMA = 1
#: Reassignments that the page lists, the worst; the others it counts.
REASSIGNMENTS_SHOWN = 50
#: Failures that the page lists, the newest.
FAULTS_SHOWN = 20


def page_steps(
    state: ClusterState, health: Health, now_ms: int, limited: int = 0
) -> Generator[None, None, dict[str, Any]]:
    """Describe the whole cluster for the page at a moment (ms), to be encoded as JSON.

    ``limited``: the groups that metrics tell of less finely than of others.

    In steps: others may have their turn between two, and change the state. What can't be described
    is left out, and among the faults.
    """
    groups, applications = [], []
    for group in state.group_names():
        with state.faults.isolated("page", group, now_ms):
            groups.append(_encoded(group_summary(state, group)))
        yield
    for group in sorted(state.applications):
        with state.faults.isolated("page", group, now_ms):
            application = state.applications.get(group)
            if application is not None:
                view = yield from application_view(state, group, application, now_ms)
                applications.append(_encoded(view))
        yield
    connect = []
    for group in sorted(state.connect.groups):
        with state.faults.isolated("page", group, now_ms):
            described = yield from connect_view(state, group, now_ms)
            if described is not None:
                connect.append(_encoded(described))
        yield
    named = present(cluster_name=health.cluster_name)
    return {
        "schema": SCHEMA,
        "now_ms": now_ms,
        "ready": not health.unready(),
        "unready": health.unready(),
        "notices": health.notices(),
        "cluster": state.cluster,
        **named,
        "version": caughtup.__version__,
        "reader": present(
            records=sum(state.counts.records.values()),
            lag=health.reader_lag,
            decode_errors=sum(state.counts.errors.values()),
        ),
        "refused": [
            {**refusal._asdict(), "times": state.refused.of(topic)}
            for topic, refusal in sorted(state.refused.newest.items())
        ],
        "faults": [fault._asdict() for fault in state.faults.newest()[:FAULTS_SHOWN]],
        "set_aside": [aside._asdict() for aside in state.set_aside.newest()[:FAULTS_SHOWN]],
        "groups": groups,
        "groups_not_told": {**state.watching.counts(), "limited": limited},
        "applications": applications,
        "connect": connect,
        "checkpoint_problems": checkpoint_problems(state),
        "streams": progress_rows(state.pipeline, now_ms),
        **reassignment_view(state, now_ms),
    }


def _encoded(view: dict[str, Any]) -> msgspec.Raw:
    """Encode a view now: what can't be costs itself alone."""
    return msgspec.Raw(msgspec.json.encode(view))


def reassignment_view(state: ClusterState, now_ms: int) -> dict[str, Any]:
    """Describe reassignments, those that fare worst only, and how others ended."""
    tracker, watch = state.reassignments, state.reassignment_watch
    worst, rows = worst_first(tracker, watch)[:REASSIGNMENTS_SHOWN], []
    for reassignment in worst:
        with state.faults.isolated("page", str(reassignment.partition), now_ms):
            rows.append(page_reassignment(tracker, reassignment, now_ms))
    return {
        "reassignments": rows,
        "reassignment_counts": verdict_counts(tracker, watch),
        "reassignments_missing": tracker.cluster.missing if tracker.cluster is not None else (),
        "throttles": [orphaned_throttle(throttle) for throttle in watch.orphaned(now_ms)],
        "recent_reassignments": [ended_reassignment(ended) for ended in reversed(tracker.ended)],
    }
