"""How far applications say that their copies are, between rebalances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from caughtup.models.ids import CopyKey, TaskId
from caughtup.models.records.task_positions import PositionRecord
from caughtup.models.tasks.copy_table import CopyTable

#: Roles that a report may name.
ROLES = ("active", "restoring", "standby")
#: Copies and lags of their changelogs that are kept, of all groups: anybody may report of groups
#: that there aren't.
MOST_FIGURES = 1_000_000


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


def reported_position(record: PositionRecord, at_ms: int) -> TaskPosition:
    """Return what a record reports, as of when the broker wrote it down (ms).

    A record names the copy again and has more than is kept of each of up to a million copies.
    """
    lags = {topic: lag for topic, lag in record.lags.items() if lag is not None}
    return TaskPosition(record.role, record.lag, lags, at_ms)


class TaskPositions(CopyTable[TaskPosition]):
    """The newest report of every copy, by group; those that are gone may be among them."""

    def __init__(self, most_figures: int = MOST_FIGURES) -> None:
        super().__init__(most_figures, _figures)

    def find(self, group: str, process: str, task: TaskId, since_ms: int) -> TaskPosition | None:
        """Return the report of a copy if it is of this moment (ms) or later."""
        position = self.of(group).get(CopyKey(process, task))
        return position if position is not None and position.at_ms >= since_ms else None


def _figures(position: TaskPosition) -> int:
    return 1 + len(position.changelogs)
