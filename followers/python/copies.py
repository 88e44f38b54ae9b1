"""The interface through which a follower sees the application's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from caughtup.models.ids import TaskId, TopicPartition

Resume = Callable[[TaskId], None]


class Copies(Protocol):
    """An application's copies of its tables; ``ChangelogTables`` is one that keeps them in memory.

    All methods are called on the event loop, and must not block.
    """

    def positions(self) -> Mapping[TopicPartition, int]:
        """Return the next offset to restore of each changelog partition with a copy here."""
        ...

    def restored(self, task: TaskId) -> bool:
        """Return whether a task has been restored since it became active here."""
        ...

    def assigned(
        self, active: frozenset[TaskId], standby: frozenset[TaskId], resume: Resume
    ) -> None:
        """Apply an assignment of active and standby tasks with state; drop all other copies.

        Call ``resume`` for each active, in every rebalance, once its tables have everything in
        their changelogs: another process may have written there while the group took this one for
        dead. Until then its source partitions are paused.
        """
        ...
