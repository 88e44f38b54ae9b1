"""End offset sums of changelogs as time goes on: they grow while their task is processed.

Its input doesn't wait for a task: one that stood still catches up with it when it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from caughtup.models.ids import TaskId
from caughtup.models.simulation.streams.topology import Changelog
from caughtup.models.simulation.virtual_time import VirtualTime


class Ends:
    """The end offset sum of each task with state, in offsets (a float between two records).

    ``changed`` is called with a task whose growth begins or ends, after it did.
    """

    def __init__(
        self,
        time: VirtualTime,
        changelogs: Mapping[TaskId, Changelog],
        changed: Callable[[TaskId], None],
    ) -> None:
        self._time = time
        self._changelogs = changelogs
        self._changed = changed
        self._at = {task: float(one.end) for task, one in changelogs.items()}
        self._growing: dict[TaskId, int] = {}
        self._stopped: dict[TaskId, int] = {}

    def __contains__(self, task: TaskId) -> bool:
        return task in self._at

    def end(self, task: TaskId) -> float:
        """Return a task's end offset sum now."""
        since_ms = self._growing.get(task)
        if since_ms is None:
            return self._at[task]
        grown = self._changelogs[task].per_second * (self._time.now_ms - since_ms) / 1_000
        return self._at[task] + grown

    def per_ms(self, task: TaskId) -> float:
        """Return how many offsets a task writes each millisecond now."""
        return self._changelogs[task].per_second / 1_000 if task in self._growing else 0.0

    def grow(self, task: TaskId, *, grows: bool) -> None:
        """Let a task write, first of all what it missed, or stop it."""
        if task not in self._at or (task in self._growing) == grows:
            return
        now_ms = self._time.now_ms
        if grows:
            missed_ms = now_ms - self._stopped.pop(task, now_ms)
            self._at[task] += self._changelogs[task].per_second * missed_ms / 1_000
            self._growing[task] = now_ms
        else:
            self._at[task] = self.end(task)
            self._stopped[task] = now_ms
            del self._growing[task]
        if self._changelogs[task].per_second:
            self._changed(task)

    def sums(self) -> dict[TaskId, int]:
        """Return all end offset sums now, as brokers would say."""
        return {task: int(self.end(task)) for task in self._at}
