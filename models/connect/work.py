"""Sets of connectors and tasks: their names in text, and the order in which Java sorts them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TypeVar

from caughtup.models.assignors.java.strings import utf16
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import NOTHING, ConnectorsAndTasks

#: A task's number has no leading zeroes and at most nine digits, more than any group needs.
_TASK = re.compile(r"(.*)-(0|[1-9][0-9]{0,8})", re.DOTALL)


class Names:
    """Distinguishes connectors from tasks by name: ``A-0`` may also be a connector."""

    def __init__(self, configured: Iterable[Mapping[str, int]]) -> None:
        """Keep the connectors that were ever configured, each with its most tasks."""
        self._most_tasks: dict[str, int] = {}
        for connectors in configured:
            for connector, tasks in connectors.items():
                self._most_tasks[connector] = max(tasks, self._most_tasks.get(connector, 0))

    def read(self, names: Iterable[str], place: str) -> ConnectorsAndTasks:
        """Return names as tasks, or as connectors if one of that name was ever configured.

        Raises ScenarioError ``ambiguous`` where a connector and a task of another have the name.
        """
        connectors: list[str] = []
        tasks: list[ConnectorTaskId] = []
        for name in names:
            task = self._task(name, place)
            if task is None:
                connectors.append(name)
            else:
                tasks.append(task)
        return ConnectorsAndTasks(tuple(connectors), tuple(tasks))

    def _task(self, name: str, place: str) -> ConnectorTaskId | None:
        match = _TASK.fullmatch(name)
        if match is None:
            return None
        task = ConnectorTaskId(match[1], int(match[2]))
        if name not in self._most_tasks:
            return task
        if task.task < self._most_tasks.get(task.connector, 0):
            raise ScenarioError(
                "ambiguous", f"{place}: {name!r:.80} is a connector, and a task of another"
            )
        return None


def written(work: ConnectorsAndTasks) -> list[str]:
    """Return the names of connectors, then of tasks by connector and number, once each."""
    ordered = Work.of([work]).in_order()
    return [*ordered.connectors, *map(str, ordered.tasks)]


#: A connector or a task.
Item = str | ConnectorTaskId
T = TypeVar("T", str, ConnectorTaskId)


@dataclass(frozen=True, slots=True)
class Work:
    """A set of connectors and a set of tasks, joined and subtracted at once."""

    connectors: frozenset[str] = frozenset()
    tasks: frozenset[ConnectorTaskId] = frozenset()

    @classmethod
    def of(cls, lists: Iterable[ConnectorsAndTasks]) -> Work:
        """Return the union of the lists."""
        everything = list(lists)
        return cls(
            frozenset().union(*[one.connectors for one in everything if one.connectors]),
            frozenset().union(*[one.tasks for one in everything if one.tasks]),
        )

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)

    def __sub__(self, other: Work) -> Work:
        return Work(self.connectors - other.connectors, self.tasks - other.tasks)

    def __or__(self, other: Work) -> Work:
        return Work(self.connectors | other.connectors, self.tasks | other.tasks)

    def meets(self, other: Work) -> bool:
        """Return whether a connector or a task is in both."""
        apart = self.connectors.isdisjoint(other.connectors) and self.tasks.isdisjoint(other.tasks)
        return not apart

    def within(self, listed: ConnectorsAndTasks) -> ConnectorsAndTasks:
        """Return the items of a list that are in the set, once each, in the list's order."""
        if not self:
            return NOTHING
        return ConnectorsAndTasks(
            tuple(dict.fromkeys(c for c in listed.connectors if c in self.connectors)),
            tuple(dict.fromkeys(task for task in listed.tasks if task in self.tasks)),
        )

    def in_order(self) -> ConnectorsAndTasks:
        """Return the set as Java sorts it: connectors by name, tasks by connector and number."""
        if not self:
            return NOTHING
        return ConnectorsAndTasks(java_sorted(self.connectors), java_sorted(self.tasks))


NO_WORK = Work()


def java_sorted(items: Iterable[T]) -> tuple[T, ...]:
    """Sort connectors, or tasks, as their ``compareTo`` does: names by UTF-16 code units.

    That is not the order of code points where a name has one beyond U+FFFF.
    """
    listed = list(items)
    names = {item if isinstance(item, str) else item.connector for item in listed}
    if all(map(str.isascii, names)):
        return tuple(sorted(listed))
    ranks = {name: rank for rank, name in enumerate(sorted(names, key=utf16))}
    return tuple(
        sorted(
            listed,
            key=lambda item: (
                (ranks[item], 0) if isinstance(item, str) else (ranks[item.connector], item.task)
            ),
        )
    )


@dataclass(frozen=True, slots=True)
class Configured:
    """The configured connectors, each with the number of its tasks, which are numbered from 0.

    Task ids are made only where needed: a large group has thousands of tasks, and most rounds
    neither create nor delete one.
    """

    connectors: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.connectors)

    @property
    def task_count(self) -> int:
        """The number of tasks of all connectors."""
        return sum(self.connectors.values())

    def foreign(self, work: Work) -> Work:
        """Return the part of some work that is not configured."""
        count_of = self.connectors.get
        connectors = work.connectors - self.connectors.keys()
        tasks = [task for task in work.tasks if task[1] >= count_of(task[0], 0)]
        return Work(frozenset(connectors), frozenset(tasks)) if connectors or tasks else NO_WORK

    def missing(self, work: Work, foreign: Work) -> ConnectorsAndTasks:
        """Return what is configured and not in ``work``, in order.

        ``foreign`` is the part of ``work`` that is not configured.
        """
        connectors = java_sorted(self.connectors.keys() - work.connectors)
        if len(work.tasks) - len(foreign.tasks) == self.task_count:
            return ConnectorsAndTasks(connectors)
        tasks: Iterable[ConnectorTaskId] = chain.from_iterable(
            map(ConnectorTaskId, repeat(connector), range(self.connectors[connector]))
            for connector in java_sorted(self.connectors)
        )
        if work.tasks:
            tasks = (task for task in tasks if task not in work.tasks)
        return ConnectorsAndTasks(connectors, tuple(tasks))
