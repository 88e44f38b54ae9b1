"""The standby assignor of a group, and the one that decides by load only."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import Protocol

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.releases import Release
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.kafka.standbys.tag_aware import TagAwareStandbyAssignor
from caughtup.models.ids import TaskId


class StandbyAssignor(Protocol):
    """Places standbys beside the actives. Source: Kafka's internal StandbyTaskAssignor."""

    def assign(
        self, clients: Sequence[ClientState], tasks: Sequence[TaskId], replicas: int
    ) -> None:
        """Assign each task, in order, up to ``replicas`` standbys on clients without a copy."""

    def may_move(self, source: int, destination: int) -> bool:
        """Return whether standbys may move between two clients, given as places, for balance."""

    def may_exchange(
        self, clients: Sequence[ClientState], source: int, destination: int, task: TaskId
    ) -> bool:
        """Return whether a standby may move between two clients for the sake of their racks."""


def choose_standby_assignor(scenario: Scenario) -> StandbyAssignor:
    """Return the group's standby assignor; releases before 3.2 ignore tags.

    Source: StandbyTaskAssignorFactory.create.
    """
    keys = scenario.configs.rack_aware_assignment_tags
    if keys and scenario.release >= Release.V3_2:
        return TagAwareStandbyAssignor([client.tags for client in scenario.clients], keys)
    return _LoadAware()


class _LoadAware:
    """Decides by load only."""

    def assign(
        self, clients: Sequence[ClientState], tasks: Sequence[TaskId], replicas: int
    ) -> None:
        assign_default_standbys(clients, tasks, replicas)

    def may_move(self, source: int, destination: int) -> bool:
        return True

    def may_exchange(
        self, clients: Sequence[ClientState], source: int, destination: int, task: TaskId
    ) -> bool:
        return True


def assign_default_standbys(
    clients: Sequence[ClientState], tasks: Sequence[TaskId], replicas: int
) -> None:
    """Assign each task, in order, up to ``replicas`` standbys on clients without a copy of it.

    All actives must be assigned. The least loaded client by (task load, process id) comes first;
    with too few clients a task gets fewer standbys. ``clients`` are in the order of their process
    ids. Source: DefaultStandbyTaskAssignor.
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
        # A client with a copy can't get another one: it is queued again only for the next task.
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
