"""The positions of copies that applications report between rebalances."""

from __future__ import annotations

from collections.abc import Callable, KeysView, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, TypeVar

from caughtup.models.ids import CopyKey, TaskId
from caughtup.models.records.task_positions import PositionRecord

Value = TypeVar("Value")


_NONE: Mapping[CopyKey, object] = MappingProxyType({})


class CopyTable(Generic[Value]):
    """The newest value of each copy; the sizes of all groups' values add up to at most ``most``.

    Anyone who may write to the topics can report values, so that the bound is needed.
    """

    def __init__(self, most: int, size: Callable[[Value], int] = lambda _: 1) -> None:
        self._groups: dict[str, dict[CopyKey, Value]] = {}
        self._most = most
        self._size = size
        self._sizes = 0

    def apply(self, group: str, copy: CopyKey, value: Value | None) -> bool:
        """Set a copy's value, or remove it (None); return False if there are too many."""
        known = self._groups.get(group, {})
        more = self._size_of(value) - self._size_of(known.get(copy))
        if more > 0 and self._sizes + more > self._most:
            return False
        self._sizes += more
        if value is not None:
            self._groups.setdefault(group, known)[copy] = value
            return True
        known.pop(copy, None)
        if not known:
            self._groups.pop(group, None)
        return True

    def groups(self) -> KeysView[str]:
        """Return the groups that have values."""
        return self._groups.keys()

    def forget(self, group: str) -> None:
        """Remove a group's values."""
        self._sizes -= sum(map(self._size, self._groups.pop(group, {}).values()))

    def of(self, group: str) -> Mapping[CopyKey, Value]:
        """Return the values of a group's copies."""
        return self._groups.get(group, _NONE)  # type: ignore[arg-type]

    def _size_of(self, value: Value | None) -> int:
        return 0 if value is None else self._size(value)


#: Roles that a report may name.
ROLES = ("active", "restoring", "standby")
#: The most copies and lags of changelogs that are kept, of all groups: reports may be of groups
#: that don't exist.
MOST_FIGURES = 1_000_000


@dataclass(frozen=True, slots=True)
class TaskPosition:
    """A process's report of one of its copies.

    ``role`` is one of ``ROLES``, None if it isn't reported. ``lag`` is in offsets, over all of the
    task's changelogs, None if one of them is unknown; ``changelogs`` has it for each topic, if
    known. ``at_ms`` is the broker's timestamp: the sender's clock may be wrong.
    """

    role: str | None
    lag: int | None
    changelogs: Mapping[str, int]
    at_ms: int


def reported_position(record: PositionRecord, at_ms: int) -> TaskPosition:
    """Return the position in a record; ``at_ms`` is the broker's timestamp.

    It takes less memory than the record: up to a million positions are kept.
    """
    lags = {topic: lag for topic, lag in record.lags.items() if lag is not None}
    return TaskPosition(record.role, record.lag, lags, at_ms)


class TaskPositions(CopyTable[TaskPosition]):
    """The newest report of every copy, by group; copies that no longer exist may be included."""

    def __init__(self, most_figures: int = MOST_FIGURES) -> None:
        super().__init__(most_figures, _figures)

    def find(self, group: str, process: str, task: TaskId, since_ms: int) -> TaskPosition | None:
        """Return the report of a copy if it is of ``since_ms`` or later."""
        position = self.of(group).get(CopyKey(process, task))
        return position if position is not None and position.at_ms >= since_ms else None


def _figures(position: TaskPosition) -> int:
    return 1 + len(position.changelogs)
