"""How far applications say that their copies are, between rebalances."""

from __future__ import annotations

from collections.abc import KeysView, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from caughtup.models.ids import TaskId

#: Roles that a report may name.
ROLES = ("active", "restoring", "standby")
#: Copies and lags of their changelogs that are kept, of all groups: anybody may report of groups
#: that there aren't.
MOST_FIGURES = 1_000_000


class CopyKey(NamedTuple):
    """A copy of a task: the process, as the application writes its id, and the task."""

    process: str
    task: TaskId


@dataclass(frozen=True, slots=True)
class TaskPosition:
    """What a process said of one of its copies.

    ``role`` is among ``ROLES``, None if it didn't tell. ``lag`` is in offsets, over all of the
    task's changelogs, None if it isn't known of one of them; ``changelogs`` has it for each topic
    as far as it is. ``at_ms`` is when the broker wrote the report down: the clock of whoever sent
    it may be wrong.
    """

    role: str | None
    lag: int | None
    changelogs: Mapping[str, int]
    at_ms: int


_NONE: Mapping[CopyKey, TaskPosition] = MappingProxyType({})


class TaskPositions:
    """The newest report of every copy, by group."""

    def __init__(self, most_figures: int = MOST_FIGURES) -> None:
        self._groups: dict[str, dict[CopyKey, TaskPosition]] = {}
        self._most = most_figures
        self._figures = 0

    def apply(self, group: str, copy: CopyKey, position: TaskPosition | None) -> bool:
        """Apply a report, or None when the process says that the copy is no longer there.

        Returns False if there are too many to take another one.
        """
        known = self._groups.get(group, {})
        before, after = _figures(known.get(copy)), _figures(position)
        if after > before and self._figures + after - before > self._most:
            return False
        self._figures += after - before
        if position is not None:
            self._groups.setdefault(group, known)[copy] = position
            return True
        known.pop(copy, None)
        if not known:
            self._groups.pop(group, None)
        return True

    def groups(self) -> KeysView[str]:
        """Name the groups that anybody reported of."""
        return self._groups.keys()

    def forget(self, group: str) -> None:
        """Forget what was reported of a group."""
        self._figures -= sum(map(_figures, self._groups.pop(group, {}).values()))

    def of(self, group: str) -> Mapping[CopyKey, TaskPosition]:
        """Return what the group's processes reported; those that are gone may be among them."""
        return self._groups.get(group, _NONE)

    def find(self, group: str, process: str, task: TaskId, since_ms: int) -> TaskPosition | None:
        """Return the report of a copy if it is of this moment (ms) or later."""
        position = self.of(group).get(CopyKey(process, task))
        return position if position is not None and position.at_ms >= since_ms else None


def _figures(position: TaskPosition | None) -> int:
    return 0 if position is None else 1 + len(position.changelogs)
