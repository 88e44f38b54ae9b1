"""Who has which copy of state before a decision, and how near it is to caught up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy

from caughtup.models.assignment.catch_up import RUNNING, UNKNOWN, is_caught_up
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.ids import TaskId

#: In the place of a client: there is none.
NOBODY = -1
_FARTHEST = 1 << 64


class Copies:
    """The copies of each task with state, tasks and clients named by their places in a scenario.

    A client has a copy if it ran the task, stood by for it, runs it by its lag, or lags less than
    a client with nothing does; where there is nothing to restore, everybody has one. ``roles``
    are what each client was assigned, ``owner`` is who ran each task. Of several that say so, it
    is the one nearest to caught up, then the first.
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
        """Return each task's clients, the active's first, if all have their number of copies.

        None if one has more or fewer, or isn't run by somebody who is caught up.
        """
        clients = []
        for task, owner in enumerate(self.owner):
            others = [one for one in self.holders[task] if one != owner and task in self.roles[one]]
            if not self.runs(task, owner) or len(others) != size - 1:
                return None
            clients.append([owner, *others])
        return clients

    def trimmed(self, size: int, values: Callable[[Iterable[int]], int]) -> list[list[int]] | None:
        """Return each task's clients, the active's first, without those beyond its copies' number.

        The ones go whose going leaves the most ``values``. None if a task has fewer copies, or
        isn't run by somebody who is caught up.
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

    def carried_out(self, clients: Sequence[Sequence[int]]) -> Copies:
        """Return the copies once they are built at these clients, the active's first."""
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
        self.owner = [NOBODY] * len(self._nothing)
        for place, own in enumerate(ran):
            for task in own:
                known = self.owner[task]
                if known == NOBODY or self.distance(task, place) < self.distance(task, known):
                    self.owner[task] = place

    def runs(self, task: int, client: int) -> bool:
        """Return whether the client, if there is one, can go on with the task at once."""
        return client != NOBODY and (
            self.lags[client][task] == RUNNING or self.caught_up(task, client)
        )

    def caught_up(self, task: int, client: int) -> bool:
        """Return whether the client can take the task over at once.

        Who ran a task is caught up on it even where its lag is unknown.
        """
        lag = self.lags[client][task]
        return is_caught_up(lag, self._acceptable) or (lag == UNKNOWN and task in self._ran[client])

    def distance(self, task: int, client: int) -> int:
        """Return what is left to restore, in offsets; 0 once caught up, an unknown lag last."""
        if self.caught_up(task, client):
            return 0
        lag = self.lags[client][task]
        return _FARTHEST if lag == UNKNOWN else lag

    def nearest(self, task: int, clients: Iterable[int]) -> int:
        """Choose who is nearest to caught up; of equals who ran the task, then the first."""
        owner = self.owner[task]
        return min(clients, key=lambda one: (self.distance(task, one), one != owner, one))

    def _numbers(self, tasks: Iterable[TaskId]) -> set[int]:
        """Return tasks' numbers; without stateless tasks, and those that are no longer there."""
        numbers = set(map(self.number.get, tasks))
        return {number for number in numbers if number is not None}

    def _find_holders(self) -> list[list[int]]:
        """List the clients with a copy of each task."""
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
