"""A process of a streams group while its tasks are assigned: its members' loads and its own."""

from __future__ import annotations

from collections.abc import Iterable

from caughtup.models.assignors.java.priority_queue import JavaPriorityQueue
from caughtup.models.assignors.java.strings import in_hash_map_order
from caughtup.models.ids import TaskId


class ProcessState:
    """Counts what a process's members have. ``load`` is tasks a member.

    Source: ProcessState of the group coordinator of Kafka 4.3.1.
    """

    def __init__(self, members: Iterable[str]) -> None:
        self.counts = dict.fromkeys(members, 0)
        self.active: dict[str, set[TaskId]] = {member: set() for member in self.counts}
        self.standby: dict[str, set[TaskId]] = {member: set() for member in self.counts}
        self._tasks: set[TaskId] = set()
        self._by_load: JavaPriorityQueue[str] | None = None

    @property
    def load(self) -> float:
        """Tasks a member."""
        return sum(self.counts.values()) / len(self.counts)

    def has(self, task: TaskId) -> bool:
        """Return whether any member has a copy of the task."""
        return task in self._tasks

    def add(self, member: str, task: TaskId, *, active: bool) -> int:
        """Assign a task to a member, and return how many it has now."""
        self._by_load = None
        return self._add(member, task, active=active)

    def add_to_least_loaded(self, task: TaskId, *, active: bool) -> int:
        """Assign a task to the member that has fewest, and return how many that has now."""
        if len(self.counts) == 1:
            return self._add(next(iter(self.counts)), task, active=active)
        if self._by_load is None:
            self._by_load = JavaPriorityQueue(self.counts)
            self._by_load.offer_all(in_hash_map_order(self.counts))
        member = self._by_load.poll()
        count = self._add(member, task, active=active)
        self._by_load.offer(member)
        return count

    def _add(self, member: str, task: TaskId, *, active: bool) -> int:
        self._tasks.add(task)
        (self.active if active else self.standby)[member].add(task)
        self.counts[member] += 1
        return self.counts[member]
