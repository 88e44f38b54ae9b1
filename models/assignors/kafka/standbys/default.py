"""Deal standbys to the least loaded clients, as Kafka does when no client tags are configured."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.ids import TaskId


def assign_default_standbys(
    clients: Sequence[ClientState], tasks: Sequence[TaskId], replicas: int
) -> None:
    """Assign each task, in order, up to ``replicas`` standbys on clients without a copy of it.

    Each has its active already. The least loaded client by (task load, process id) comes first;
    with too few clients a task gets fewer standbys. ``clients`` are in the order of their process
    ids.
    Source: DefaultStandbyTaskAssignor.
    """
    if replicas >= len(clients) - 1:
        everything = frozenset(tasks)
        for client in clients:
            client.standby |= everything - client.active
        return
    queue = [(client.task_load(), place) for place, client in enumerate(clients)]
    heapify(queue)
    for task in tasks:
        remaining = replicas
        # Whoever has a copy can't get another one: such clients return only for the next task.
        out_of_turn: list[tuple[float, int]] = []
        while remaining and queue:
            load, place = heappop(queue)
            client = clients[place]
            if task not in client.active:
                client.standby.add(task)
                remaining -= 1
                load = client.task_load()
            out_of_turn.append((load, place))
        for entry in out_of_turn:
            heappush(queue, entry)
