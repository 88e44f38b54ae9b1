"""The copies of state that exist before a decision, and how far each is from caught up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy

from caughtup.models.assignment.client_state import RUNNING, UNKNOWN, is_caught_up
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.ids import TaskId

#: The place that stands for no client.
NO_CLIENT = -1
_FARTHEST = 1 << 64


class ExistingCopies:
    """The existing copies of each stateful task; tasks and clients are places in a scenario.

    A client has a copy if it ran the task, had its standby, reports it as running, or lags less
    than a client without state; if there is nothing to restore, every client has one. ``roles`` are
    the tasks that each client was assigned, ``owner`` is the client that ran each task: of several
    that report it, the one nearest to caught up, then the first.
    """

    __slots__ = ("_acceptable", "_nothing", "_ran", "holders", "lags", "number", "owner", "roles")

    def __init__(self, scenario: Scenario) -> None:
        tasks = scenario.stateful
        self.number: dict[TaskId, int] = dict(zip(tasks, range(len(tasks)), strict=True))
        self._acceptable = scenario.configs.acceptable_recovery_lag
        lags = [[*map(client.lags.__getitem__, tasks)] for client in scenario.clients]
        ran = [self._numbers(client.previous_active) for client in scenario.clients]
        roles = [
            own.union(self._numbers(client.previous_standby))
            for own, client in zip(ran, scenario.clients, strict=True)
        ]
        self._nothing = [*map(max, zip(*lags, strict=True))]
        self._take(lags, ran, roles)

    def assigned(self, size: int) -> list[list[int]] | None:
        """Return each task's clients, the active's first, if each task has exactly ``size`` copies.

        None if a task has more or fewer, or if no caught-up client runs it.
        """
        clients = []
        for task, owner in enumerate(self.owner):
            others = [one for one in self.holders[task] if one != owner and task in self.roles[one]]
            if not self.runs(task, owner) or len(others) != size - 1:
                return None
            clients.append([owner, *others])
        return clients

    def trimmed(self, size: int, values: Callable[[Iterable[int]], int]) -> list[list[int]] | None:
        """Return each task's clients, the active's first, with at most ``size`` of them.

        Copies whose removal keeps the most ``values`` are dropped. None if a task has fewer than
        ``size`` copies, or if no caught-up client runs it.
        """
        clients = []
        for task, owner in enumerate(self.owner):
            others = [one for one in self.holders[task] if one != owner and task in self.roles[one]]
            if not self.runs(task, owner) or len(others) < size - 1:
                return None
            while len(others) > size - 1:
                others.remove(max(others, key=lambda one: values(_all_but(one, owner, others))))
            clients.append([owner, *others])
        return clients

    def carried_out(self, clients: Sequence[Sequence[int]]) -> ExistingCopies:
        """Return the copies once all of these are built; each task's first is the active."""
        lags = [self._nothing.copy() for _ in self.lags]
        ran: list[set[int]] = [set() for _ in self.lags]
        roles: list[set[int]] = [set() for _ in self.lags]
        for task, own in enumerate(clients):
            for client in own:
                roles[client].add(task)
                lags[client][task] = 0
            ran[own[0]].add(task)
            lags[own[0]][task] = RUNNING
        later = copy(self)
        later._take(lags, ran, roles)
        return later

    def _take(self, lags: list[list[int]], ran: list[set[int]], roles: list[set[int]]) -> None:
        self.lags, self._ran, self.roles = lags, ran, roles
        self.holders = self._find_holders()
        self.owner = [NO_CLIENT] * len(self._nothing)
        for place, own in enumerate(ran):
            for task in own:
                known = self.owner[task]
                if known == NO_CLIENT or self.distance(task, place) < self.distance(task, known):
                    self.owner[task] = place

    def runs(self, task: int, client: int) -> bool:
        """Return whether the client, if there is one, can run the task without restoring."""
        return client != NO_CLIENT and (
            self.lags[client][task] == RUNNING or self.caught_up(task, client)
        )

    def caught_up(self, task: int, client: int) -> bool:
        """Return whether the client can take the task over at once.

        The client that ran a task counts as caught up on it even with an unknown lag.
        """
        lag = self.lags[client][task]
        return is_caught_up(lag, self._acceptable) or (lag == UNKNOWN and task in self._ran[client])

    def distance(self, task: int, client: int) -> int:
        """Return the offsets left to restore: 0 once caught up; an unknown lag is the greatest."""
        if self.caught_up(task, client):
            return 0
        lag = self.lags[client][task]
        return _FARTHEST if lag == UNKNOWN else lag

    def nearest(self, task: int, clients: Iterable[int]) -> int:
        """Return the client nearest to caught up, then the owner, then the first."""
        owner = self.owner[task]
        return min(clients, key=lambda one: (self.distance(task, one), one != owner, one))

    def _numbers(self, tasks: Iterable[TaskId]) -> set[int]:
        """Return the numbers of those tasks that are stateful and still in the topology."""
        numbers = set(map(self.number.get, tasks))
        return {number for number in numbers if number is not None}

    def _find_holders(self) -> list[list[int]]:
        """Return the clients with a copy of each task."""
        nothing = self._nothing
        holders: list[list[int]] = [[] for _ in nothing]
        for place, lags in enumerate(self.lags):
            having: Iterable[int] = self.roles[place]
            if lags and (lags != nothing or min(lags) <= 0):
                having = self.roles[place].union(
                    task
                    for task, (lag, most) in enumerate(zip(lags, nothing, strict=True))
                    if (0 <= lag < most or not lag or lag == RUNNING)
                )
            for task in having:
                holders[task].append(place)
        return holders


def _all_but(client: int, owner: int, others: Iterable[int]) -> list[int]:
    return [owner, *(one for one in others if one != client)]
