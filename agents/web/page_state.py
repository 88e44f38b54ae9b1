"""What the page shows, as JSON: ``/api/state``. Unknown figures are absent."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec

import caughtup
from caughtup.agents.process.health import Health
from caughtup.agents.views.applications import application_view
from caughtup.agents.views.copies import present
from caughtup.agents.views.pipeline import progress_rows
from caughtup.agents.views.reassignments import (
    ended_reassignment,
    orphaned_throttle,
    page_reassignment,
    verdict_counts,
    worst_first,
)
from caughtup.models.lag.assessment import AT_THE_END, Assessed
from caughtup.models.lag.group_lag import group_lag
from caughtup.models.state.cluster import ClusterState

SCHEMA = 1
#: Reassignments that the page lists, the worst; the others it counts.
REASSIGNMENTS_SHOWN = 50
#: Failures that the page lists, the newest.
FAULTS_SHOWN = 20


def page_steps(
    state: ClusterState, health: Health, now_ms: int
) -> Generator[None, None, dict[str, Any]]:
    """Describe the whole cluster for the page at a moment (ms), to be encoded as JSON.

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
    return {
        "schema": SCHEMA,
        "now_ms": now_ms,
        "ready": not health.unready(),
        "unready": health.unready(),
        "notices": health.notices(),
        "cluster": state.cluster,
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
        "applications": applications,
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


def group_summary(state: ClusterState, group: str) -> dict[str, Any]:
    """Sum a group up; its lag is absent if that of any partition is unknown.

    ``lag_seconds`` is the age of its oldest unread record, ``lag_seconds_method`` how that was had
    (``LagSeconds``); partitions of topics that are gone don't count in it, as in the verdict.
    """
    membership = state.groups.membership(group)
    summed = group_lag(state.commits, group, membership, state.ends)
    judged = state.assessments.verdicts.get(group)
    seconds, method = _oldest_unread(state, group, summed.known)
    return present(
        group=group,
        group_type=state.group_type(group),
        members=len(membership.members) if membership else None,
        partitions=summed.partitions,
        lag=summed.lag,
        generation=membership.generation if membership and membership.members else None,
        status=judged.verdict if judged else None,
        why=judged.reason if judged else None,
        lag_seconds=seconds,
        lag_seconds_method=method,
    )


def _oldest_unread(state: ClusterState, group: str, known: int) -> tuple[float | None, str | None]:
    """Return the worst lag in seconds and its method, or nothing if one of them isn't known.

    Of ``known`` partitions, those of the group whose log's end is known.
    """
    assessments = state.assessments
    if not known or not assessments.is_assessed(group):
        return None, None
    membership, has_commit = state.groups.membership(group), state.commits.has_commit(group)
    owned = {} if membership is None else membership.owners
    behind = [
        partition
        for partition in sorted(assessments.behind(group))
        if state.ends.history(partition) is not None
        and (partition in owned or has_commit(partition))
    ]
    if not behind:
        return AT_THE_END.lag_seconds, AT_THE_END.method
    seconds, method = _worst([assessments.find(group, partition) for partition in behind])
    if seconds == 0 and len(behind) < known:  # as that of those at their end: the first one's
        rows = state.partition_rows(group)
        first = next(row.partition for row in rows if row.ends is not None)
        return _worst([assessments.find(group, first)])
    return seconds, method


def _worst(partitions: list[Assessed | None]) -> tuple[float | None, str | None]:
    worst: tuple[float, str] | None = None
    for assessed in partitions:
        if assessed is None or assessed.lag_seconds is None or assessed.method is None:
            return None, None
        if worst is None or assessed.lag_seconds > worst[0]:
            worst = assessed.lag_seconds, assessed.method
    return worst or (None, None)
