"""Sets of connectors and tasks, and the order in which Java sorts them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from caughtup.models.assignors.java.strings import utf16
from caughtup.models.ids import ConnectorTaskId
from caughtup.models.wire.connect_protocol import NOTHING, ConnectorsAndTasks

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
        """Return all that is in any of the lists."""
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
        """Return whether anything is in both."""
        apart = self.connectors.isdisjoint(other.connectors) and self.tasks.isdisjoint(other.tasks)
        return not apart

    def within(self, listed: ConnectorsAndTasks) -> ConnectorsAndTasks:
        """Return what of a list is in the set, once each, in the list's order."""
        if not self:
            return NOTHING
        return ConnectorsAndTasks(
            tuple(dict.fromkeys(c for c in listed.connectors if c in self.connectors)),
            tuple(dict.fromkeys(task for task in listed.tasks if task in self.tasks)),
        )

    def in_order(self) -> ConnectorsAndTasks:
        """Return it as Java sorts it: connectors by name, tasks by connector and number."""
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
