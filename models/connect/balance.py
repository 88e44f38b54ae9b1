"""What workers have beyond their shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from caughtup.models.connect.configured import Configured
from caughtup.models.connect.loads import WorkerLoad
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks

T = TypeVar("T", str, ConnectorTaskId)


def beyond_their_shares(
    configured: Configured, loads: Sequence[WorkerLoad]
) -> Mapping[str, ConnectorsAndTasks]:
    """Return what each worker has to give for balance, connectors and tasks apart.

    Whoever has nothing to give isn't in it. The extra ones, where the shares don't come out even,
    stay with the first in the order of ``loads``. Source: ``performLoadBalancingRevocations``.
    """
    if not configured or all(load.is_empty for load in loads):
        return {}
    connectors = _beyond(len(configured.connectors), [load.connectors for load in loads])
    tasks = _beyond(configured.task_count, [load.tasks for load in loads])
    return {
        load.name: ConnectorsAndTasks(tuple(from_connectors), tuple(from_tasks))
        for load, from_connectors, from_tasks in zip(loads, connectors, tasks, strict=True)
        if from_connectors or from_tasks
    }


def _beyond(total: int, owned: Sequence[Sequence[T]]) -> list[Sequence[T]]:
    """Return the first of what each one has, as many as it has beyond its share of the total."""
    share, extras = divmod(total, len(owned))
    beyond: list[Sequence[T]] = []
    for items in owned:
        allowed = share
        if len(items) <= share:
            beyond.append(())
            continue
        if extras:
            allowed += 1
            extras -= 1
        beyond.append(items[: len(items) - allowed])
    return beyond
