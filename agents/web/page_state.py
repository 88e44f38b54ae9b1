"""What the page shows, as JSON: ``/api/state``. Unknown figures are absent."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec

import caughtup
from caughtup.agents.process.health import Health
from caughtup.agents.views.copies import copy_fields, finite, present, rates_view
from caughtup.agents.views.pipeline import progress_rows
from caughtup.agents.views.reassignments import (
    ended_reassignment,
    orphaned_throttle,
    page_reassignment,
    verdict_counts,
    worst_first,
)
from caughtup.models.copies.watch import CopyWatch
from caughtup.models.decisions.application import Application
from caughtup.models.decisions.generation import DecidedGeneration
from caughtup.models.decisions.recommendation_fields import (
    inputs_fields,
    movement_fields,
    summary_fields,
)
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.lag.assessment import Assessed
from caughtup.models.offsets import sum_offsets
from caughtup.models.state.cluster import ClusterState

SCHEMA = 1
#: Partitions in movement that the page lists, the worst; the others it counts.
MOVEMENTS_SHOWN = 50
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
    """Describe partitions in movement, those that fare worst only, and how others ended."""
    tracker, watch = state.reassignments, state.reassignment_watch
    worst, rows = worst_first(tracker, watch)[:MOVEMENTS_SHOWN], []
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
    rows = list(state.partition_rows(group))
    lags = [row.lag.lag for row in rows if row.lag is not None]
    membership = state.groups.membership(group)
    judged = state.assessments.verdicts.get(group)
    seconds, method = _oldest_unread(
        [state.assessments.find(group, row.partition) for row in rows if row.ends is not None]
    )
    return present(
        group=group,
        group_type=state.group_type(group),
        members=len(membership.members) if membership else None,
        partitions=len(rows),
        lag=sum_offsets(lags) if len(lags) == len(rows) else None,
        generation=membership.generation if membership and membership.members else None,
        status=judged.verdict if judged else None,
        why=judged.reason if judged else None,
        lag_seconds=seconds,
        lag_seconds_method=method,
    )


def _oldest_unread(partitions: list[Assessed | None]) -> tuple[float | None, str | None]:
    """Return the worst lag in seconds and its method, or nothing if one of them isn't known."""
    worst: tuple[float, str] | None = None
    for assessed in partitions:
        if assessed is None or assessed.lag_seconds is None or assessed.method is None:
            return None, None
        if worst is None or assessed.lag_seconds > worst[0]:
            worst = assessed.lag_seconds, assessed.method
    return worst or (None, None)


def application_view(
    state: ClusterState, group: str, application: Application, now_ms: int
) -> Generator[None, None, dict[str, Any]]:
    """Describe a Streams application: the last decided generation, its tasks and reasons.

    In steps, as ``page_steps``.
    """
    decided = application.decided
    generation = decided.generation if decided else application.newest
    due = application.newest.next_rebalance()
    probing: dict[str, Any] = {"scheduled": due is not None}
    if due is not None:
        probing |= {
            "due_ms": due[0],
            "carried_by": application.newest.clients[due[1].process].name,
        }
    clients = _clients(generation)
    yield
    tasks = yield from _tasks(state.task_rows(group), decided, state.watches.get(group))
    return {
        "group": group,
        "generation": application.newest.generation,
        "as_of_ms": generation.as_of_ms,
        "acceptable_recovery_lag": state.applications.parameters(group).value(
            "acceptable.recovery.lag"
        ),
        "clients": clients,
        "tasks": tasks,
        "probing": probing | _probing(state.watches.get(group)),
        **(_decided(decided) if decided else {}),
        "set_aside": [aside._asdict() for aside in state.set_aside.of(group)],
        "rates": rates_view(state, state.watches.get(group), now_ms),
        "history": [
            {
                "generation": p.generation,
                "at_ms": p.at_ms,
                "result": p.result,
                "movements": p.movements,
            }
            for p in reversed(application.history)
        ],
    }


def _probing(watch: CopyWatch | None) -> dict[str, Any]:
    """Describe whether the next probing rebalance is worth it, once that was worked out."""
    if watch is None or (probing := watch.probing) is None:
        return {}
    worthwhile = probing.plan_seconds_worthwhile
    return present(
        worthwhile_now=probing.worthwhile_now,
        worthwhile_at_ms=probing.worthwhile_at_ms,
        why=probing.reason,
        overdue_ms=probing.overdue_ms,
        fired=probing.fired,
        needless=probing.needless,
        endless=probing.endless,
        plan_seconds=probing.plan_seconds,
        plan_seconds_worthwhile=None if worthwhile is None else finite(worthwhile),
    )


def _clients(generation: StreamsGeneration) -> list[dict[str, Any]]:
    return [
        {
            "process": str(process),
            "name": client.name,
            "client_ids": [member.client_id for member in client.members],
            "host": client.members[0].host,
            "capacity": client.capacity,
            "leader": any(member.member_id == generation.leader for member in client.members),
        }
        for process, client in sorted(
            generation.clients.items(), key=lambda item: (item[1].name, item[0])
        )
    ]


def _tasks(
    copies: list[TaskCopy], decided: DecidedGeneration | None, watch: CopyWatch | None
) -> Generator[None, None, list[dict[str, Any]]]:
    by_task: dict[str, list[dict[str, Any]]] = {}
    for copy in copies:
        by_task.setdefault(str(copy.task), []).append(copy_fields(copy, watch))
        yield
    stateful = {str(task) for task in decided.inputs.ends} if decided else set()
    return [
        {"task": task, "stateful": task in stateful, "copies": found}
        for task, found in by_task.items()
    ]


def _decided(decided: DecidedGeneration) -> dict[str, Any]:
    return present(
        exact=_exact(decided),
        leader_movements=None
        if decided.leader_movements is None
        else [movement_fields(movement) for movement in decided.leader_movements],
        recommendation=_recommendation(decided),
    )


def _exact(decided: DecidedGeneration) -> dict[str, str]:
    return present(
        assignor=decided.exact.assignor,
        result=decided.exact.result,
        why=decided.exact.why,
        told=decided.exact.told or None,
    )


def _recommendation(decided: DecidedGeneration) -> dict[str, Any] | None:
    """Return the recommendation without what the page doesn't show: the scenario is long."""
    recommended = decided.recommendation
    if recommended is None:
        return None
    return {**summary_fields(recommended), "inputs": inputs_fields(recommended)}
