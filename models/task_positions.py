"""How far applications say that their copies are, between rebalances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from caughtup.models.ids import TaskId

#: Roles that a report may name.
ROLES = ("active", "restoring", "standby")


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

    def __init__(self) -> None:
        self._groups: dict[str, dict[CopyKey, TaskPosition]] = {}

    def apply(self, group: str, copy: CopyKey, position: TaskPosition | None) -> None:
        """Take a report, or None when the process says that the copy is no longer there."""
        if position is not None:
            self._groups.setdefault(group, {})[copy] = position
            return
        known = self._groups.get(group)
        if known is not None:
            known.pop(copy, None)
            if not known:
                del self._groups[group]

    def of(self, group: str) -> Mapping[CopyKey, TaskPosition]:
        """Give what the group's processes reported; those that are gone may be among them."""
        return self._groups.get(group, _NONE)

    def find(self, group: str, process: str, task: TaskId, since_ms: int) -> TaskPosition | None:
        """Give the report of a copy if it is of this moment (ms) or later."""
        position = self.of(group).get(CopyKey(process, task))
        return position if position is not None and position.at_ms >= since_ms else None
