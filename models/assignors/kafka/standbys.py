"""The assignment of standbys, by load or spread over client tags, as Kafka Streams decides it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Protocol

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.configs import Release
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.assignors.java.hash_map import JavaHashMap, task_hash_code
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


#: The values that a task's copies already have, by tag key. A client with any of them is excluded.
_InUse = Mapping[str, Collection[str]]
_NOTHING: _InUse = {}


class TagAwareStandbyAssignor:
    """Puts a task's copies on clients that differ from each other in every tag, where possible.

    ``tags`` are those of each client, in the order of the clients. Only the tags in ``keys`` keep
    copies apart, but all of them limit where a standby may move afterwards. Source: KIP-708,
    ClientTagAwareStandbyTaskAssignor.
    """

    def __init__(self, tags: Sequence[Mapping[str, str]], keys: Collection[str]) -> None:
        self._tags = tags
        self._spread_over = [{k: v for k, v in own.items() if k in keys} for own in tags]
        self._values: defaultdict[str, set[str]] = defaultdict(set)
        for own in self._spread_over:
            for key, value in own.items():
                self._values[key].add(value)

    def assign(
        self, clients: Sequence[ClientState], tasks: Sequence[TaskId], replicas: int
    ) -> None:
        """Assign each task, whose active is assigned, up to ``replicas`` standbys.

        The least loaded client by (task load, process id) comes first among those that no tag
        excludes. After this was tried for every task, missing standbys go to the least loaded
        clients regardless of tags, in the order of a Java HashMap from which the tasks with all
        their standbys were removed.
        """
        owners = {task: place for place, client in enumerate(clients) for task in client.active}
        queues = _LeastLoaded(clients, self._spread_over)
        waiting = JavaHashMap[TaskId](task_hash_code, keys=tasks)
        missing = dict.fromkeys(tasks, replicas)
        for task in tasks:
            missing[task] -= self._spread(queues, task, owners[task], replicas)
            if not missing[task]:
                waiting.remove(task)
        for task in waiting:
            for _ in range(missing[task]):
                if queues.give(task, _NOTHING) is None:
                    break
            queues.end_turn()

    def may_move(self, source: int, destination: int) -> bool:
        """Return whether standbys may move to ``destination``: it has all tags of ``source``.

        Source: ClientTagAwareStandbyTaskAssignor.isAllowedTaskMovement.
        """
        theirs = self._tags[destination]
        return all(theirs.get(key) == value for key, value in self._tags[source].items())

    def may_exchange(
        self, clients: Sequence[ClientState], source: int, destination: int, task: TaskId
    ) -> bool:
        """Return whether a standby may move without its task having fewer distinct tags.

        Source: the overload of ClientTagAwareStandbyTaskAssignor.isAllowedTaskMovement with a task.
        """
        others = {
            tag
            for place, client in enumerate(clients)
            if place not in (source, destination) and client.has(task)
            for tag in self._tags[place].items()
        }
        before, after = (len(others | self._tags[c].items()) for c in (source, destination))
        return after >= before

    def _spread(self, queues: _LeastLoaded, task: TaskId, owner: int, replicas: int) -> int:
        """Assign a task standbys that share no tag with another copy of it; return how many.

        A tag no longer counts once there are as many copies as it has values: it would exclude
        every client. Kafka checks this only for the tags of the client that got the last copy.
        """
        in_use: defaultdict[str, set[str]] = defaultdict(set)
        given = 0
        last: int | None = owner
        while last is not None and given < replicas:
            for key, value in self._spread_over[last].items():
                if len(self._values[key]) <= given + 1:
                    in_use[key].clear()
                else:
                    in_use[key].add(value)
            last = queues.give(task, in_use)
            given += last is not None
        queues.end_turn()
        return given


class _LeastLoaded:
    """Clients by (task load, process id), those with the same tags in one queue.

    Clients that have a copy of a task are set aside until the task's turn ends.
    """

    def __init__(self, clients: Sequence[ClientState], tags: Sequence[Mapping[str, str]]) -> None:
        self._clients = clients
        self._alike = [tuple(sorted(own.items())) for own in tags]
        self._queues: defaultdict[tuple[tuple[str, str], ...], list[tuple[float, int]]]
        self._queues = defaultdict(list)
        self._aside: list[int] = []
        for place, client in enumerate(clients):
            self._queues[self._alike[place]].append((client.task_load(), place))
        for queue in self._queues.values():
            heapify(queue)

    def give(self, task: TaskId, in_use: _InUse) -> int | None:
        """Assign a standby to the least loaded client without a tag in use; return it, or None."""
        least = None
        for tags, queue in self._queues.items():
            if any(value in in_use.get(key, ()) for key, value in tags):
                continue
            while queue and self._clients[queue[0][1]].has(task):
                self._aside.append(heappop(queue)[1])
            if queue and (least is None or queue[0] < least[0]):
                least = queue
        if least is None:
            return None
        _, place = heappop(least)
        self._clients[place].standby.add(task)
        self._aside.append(place)
        return place

    def end_turn(self) -> None:
        """Queue the clients again that were set aside, with their present loads."""
        for place in self._aside:
            heappush(self._queues[self._alike[place]], (self._clients[place].task_load(), place))
        self._aside.clear()
