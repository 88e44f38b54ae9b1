"""What a worker has when it has done as it was told, in the order in which it will say so."""

from __future__ import annotations

from collections.abc import Iterable

from caughtup.models.assignors.java.strings import in_hash_set_order
from caughtup.models.connect.decision import WorkerDecision
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import ConnectorsAndTasks


def owned_after(owned: ConnectorsAndTasks, told: WorkerDecision) -> ConnectorsAndTasks:
    """Return what the worker has then: what is new first, in the order of the wire.

    That order decides what of it is revoked first. Source: Connect's ``WorkerCoordinator`` and
    ``ExtendedAssignment``.
    """
    new = on_the_wire(told.assigned)
    gone_connectors, gone_tasks = set(told.revoked.connectors), set(told.revoked.tasks)
    return on_the_wire(
        ConnectorsAndTasks(
            (*new.connectors, *(one for one in owned.connectors if one not in gone_connectors)),
            (*new.tasks, *(task for task in owned.tasks if task not in gone_tasks)),
        )
    )


def on_the_wire(work: ConnectorsAndTasks) -> ConnectorsAndTasks:
    """Return assigned work in the order in which it is written: connectors by hash, tasks by them.

    A connector's tasks stand together, those of connectors that are assigned themselves first.
    """
    connectors = in_hash_set_order(work.connectors)
    tasks: dict[str, list[ConnectorTaskId]] = {connector: [] for connector in connectors}
    for task in work.tasks:
        tasks.setdefault(task.connector, []).append(task)
    return ConnectorsAndTasks(tuple(connectors), tuple(_flat(tasks.values())))


def _flat(lists: Iterable[Iterable[ConnectorTaskId]]) -> Iterable[ConnectorTaskId]:
    return (task for one in lists for task in one)
