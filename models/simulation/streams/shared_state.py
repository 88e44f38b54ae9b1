"""The parts that a simulated application's instances share: time, changelog ends, time line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from caughtup.models.ids import TaskId
from caughtup.models.simulation.streams.topology import Changelog, SimulatedApplication
from caughtup.models.simulation.time_line import Activity, TimeLine
from caughtup.models.simulation.virtual_time import VirtualTime


class ChangelogEnds:
    """The end offset sum of each stateful task, in offsets (a float between two records).

    It grows while the task is processed. A task's input doesn't wait: one that stood still writes
    what it missed when it goes on. ``changed`` is called with a task whose growth began or ended.
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
        """Return the offsets that a task writes each millisecond now."""
        return self._changelogs[task].per_second / 1_000 if task in self._growing else 0.0

    def grow(self, task: TaskId, *, grows: bool) -> None:
        """Let a task write, with what it missed at once, or stop it."""
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
        """Return all end offset sums now, as brokers report them."""
        return {task: int(self.end(task)) for task in self._at}


class SharedState:
    """The virtual time, the changelog ends and the time line of a simulation.

    ``epoch_ms`` is the leader's clock at the start. ``copies_built`` is the number of states
    restored from nothing, ``to_restore`` the offsets that copies had to restore when they began.
    """

    def __init__(
        self,
        application: SimulatedApplication,
        epoch_ms: int,
        growth_changed: Callable[[TaskId], None],
    ) -> None:
        self.application = application
        self.epoch_ms = epoch_ms
        self.tasks = application.tasks()
        self.names = {
            task: application.task_names.get(task) or str(task) for task in self.tasks.sources
        }
        self.time = VirtualTime()
        self.line = TimeLine()
        self.ends = ChangelogEnds(self.time, application.changelogs, growth_changed)
        self.copies_built = 0
        self.to_restore = 0.0

    def does(self, task: TaskId, client: str, activity: Activity | None) -> None:
        """Record what a client's copy of a task does."""
        self.line.does(self.time.now_ms, self.names[task], client, activity)

    def mark(self, kind: str, what: str) -> None:
        """Record an event."""
        self.line.mark(self.time.now_ms, kind, what)

    def restores(self, task: TaskId, client: str, at: float) -> None:
        """Count the offsets that a copy has to restore, from its offset sum to the end."""
        end = self.ends.end(task)
        self.to_restore += max(end - at, 0.0)
        if at <= 0 < end:
            self.copies_built += 1
            self.mark("copy", f"{client} builds {self.names[task]}")
