"""A Kafka Streams application for people: what was decided last, its tasks, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from typing import Any

from caughtup.agents.views.configs import config_lines
from caughtup.agents.views.copies import copy_fields, finite, present, rates_view
from caughtup.models.copies.watch import CopyWatch
from caughtup.models.decisions.application import Application
from caughtup.models.decisions.life import DecidedGeneration
from caughtup.models.decisions.membership_change import MembershipChange
from caughtup.models.decisions.task_table import TaskCopy
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.ids import natural_order
from caughtup.models.recent.rebalances import named
from caughtup.models.records.fields import ABSENT, changed
from caughtup.models.records.recommendations import RecommendationRecord
from caughtup.models.state.cluster import ClusterState


def application_view(
    state: ClusterState, group: str, application: Application, now_ms: int
) -> Generator[None, None, dict[str, Any]]:
    """Describe a Streams application: the last decided generation, its tasks and reasons.

    In steps: others may have their turn between two.
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
        "acceptable_recovery_lag": state.applications.config(group, "acceptable.recovery.lag"),
        "configs": [changed(line, group=ABSENT) for line in config_lines(state, group)],
        "clients": clients,
        "tasks": tasks,
        "probing": probing | _probing(state.watches.get(group)),
        **(_decided(decided) if decided else {}),
        **present(change=application.change and change_fields(application.change)),
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


def change_fields(change: MembershipChange) -> dict[str, Any]:
    """Describe the last time that instances came or went, and what it took since."""
    causes = named(Counter(change.joined), "joined"), named(Counter(change.left), "left")
    return present(
        at_ms=change.at_ms,
        text=", ".join(cause for cause in causes if cause),
        copies=change.copies,
        rebalances=change.rebalances,
        waits=change.waits,
        waited_seconds=change.waited_ms / 1000,
        at_rest_ms=change.at_rest_ms,
    )


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
            generation.clients.items(), key=lambda item: (natural_order(item[1].name), item[0])
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
        exact=changed(decided.exact.leader, identical=ABSENT),
        leader_movements=decided.leader_movements,
        recommendation=_recommendation(decided),
    )


def _recommendation(decided: DecidedGeneration) -> RecommendationRecord | None:
    """Return the recommendation without its assignment and scenario, which are long."""
    recommended = decided.recommendation
    if recommended is None:
        return None
    inputs = changed(recommended.inputs, scenario=ABSENT)
    return changed(recommended, assignment=ABSENT, inputs=inputs)
