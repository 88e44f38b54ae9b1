"""The interface to an application's tables, which the application keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from caughtup.models.ids import TaskId, TopicPartition

Resume = Callable[[TaskId], None]


class Copies(Protocol):
    """An application's copies of its tables; ``ChangelogTables`` is one that keeps them in memory.

    All of this is called on the event loop, and must not wait.
    """

    def positions(self) -> Mapping[TopicPartition, int]:
        """Return the next offset to restore, of each changelog partition that there is a copy of."""
        ...

    def restored(self, task: TaskId) -> bool:
        """Return whether a task has been restored since it became active here."""
        ...

    def assigned(
        self, active: frozenset[TaskId], standby: frozenset[TaskId], resume: Resume
    ) -> None:
        """Apply an assignment: tasks with state to run, and tasks to stand by for.

        Copies of others are no longer wanted. ``resume`` is to be called for each active, in
        every rebalance, once its tables hold all that is in their changelogs: another process may
        have written there since, while this one was thought gone. Until then its source
        partitions are paused.
        """
        ...
