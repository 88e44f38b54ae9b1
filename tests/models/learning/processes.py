"""An instance of a played application: what it runs, what it has on disk, and what it says of that."""

from __future__ import annotations

from dataclasses import dataclass, field

from caughtup.models.ids import ProcessId, TaskId, TopicPartition
from caughtup.models.offsets import LATEST_OFFSET
from caughtup.models.partition_assignor.rebalance import MemberSubscription


@dataclass
class Process:
    """An instance: its threads, its tags, what it has on disk, and what it runs."""

    id: ProcessId
    threads: tuple[str, ...]
    tags: dict[str, str]
    rack: str | None = None
    positions: dict[TaskId, int] = field(default_factory=dict)
    owned: dict[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    tasks: dict[str, tuple[TaskId, ...]] = field(default_factory=dict)
    running: set[TaskId] = field(default_factory=set)

    def member(self, thread: str) -> MemberSubscription:
        """Return what a thread says when it joins."""
        own = self.tasks.get(thread, ())
        if thread == self.threads[0]:  # it got the locks of what nobody runs
            held = {task for tasks in self.tasks.values() for task in tasks}
            own = (*own, *sorted(self.positions.keys() - held))
        sums = {
            task: LATEST_OFFSET if task in self.running else self.positions[task]
            for task in own
            if task in self.running or task in self.positions
        }
        return MemberSubscription(
            thread,
            self.id,
            self.owned.get(thread, ()),
            sums,
            tags=dict(self.tags),
            rack=self.rack,
        )
