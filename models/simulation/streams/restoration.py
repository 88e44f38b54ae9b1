"""A stream thread's restore consumer in virtual time: actives first, then standbys that lag.

It restores all its changelogs at equal rates. A standby gets nothing while an active of its thread
restores (models/copies/restoration.py has the sources).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from caughtup.models.ids import TaskId
from caughtup.models.simulation.streams.shared_state import ChangelogEnds
from caughtup.models.simulation.virtual_time import Event, VirtualTime

#: Distances below this are rounding errors of floats: offsets are whole numbers.
_NEAR = 1e-6


@dataclass(slots=True)
class _Copy:
    at: float
    active: bool
    starts_ms: int
    at_end: bool = False


class Restoration:
    """The copies that one thread restores and follows.

    ``per_second``: offsets a second, of all copies together. ``restored`` is called with an active
    that has reached the end, which is no longer restored then; ``caught_up`` with a standby and
    whether it is at the end, whenever that changes.
    """

    def __init__(
        self,
        time: VirtualTime,
        ends: ChangelogEnds,
        per_second: float,
        restored: Callable[[TaskId], None],
        caught_up: Callable[[TaskId, bool], None],
    ) -> None:
        self._time = time
        self._ends = ends
        self._per_ms = per_second / 1_000
        self._restored = restored
        self._caught_up = caught_up
        self._copies: dict[TaskId, _Copy] = {}
        self._moved_ms = 0
        self._next: Event | None = None
        self.read = 0.0

    def __contains__(self, task: TaskId) -> bool:
        return task in self._copies

    @property
    def restoring(self) -> list[TaskId]:
        """The actives that aren't restored yet, sorted."""
        return sorted(task for task, copy in self._copies.items() if copy.active)

    @property
    def behind(self) -> bool:
        """Whether any copy is not at its end."""
        return not all(copy.at_end for copy in self._copies.values())

    def add(self, task: TaskId, at: float, *, active: bool, start_ms: int = 0) -> None:
        """Begin to restore an active, or to follow with a standby, from an offset sum."""
        self._move()
        self._copies[task] = _Copy(at, active, self._time.now_ms + start_ms)
        self._fall_behind()
        self._plan()

    def remove(self, task: TaskId) -> float:
        """Stop a copy; return the offset sum that it has reached."""
        self._move()
        copy = self._copies.pop(task)
        self._plan()
        return copy.at

    def position(self, task: TaskId) -> float:
        """Return the offset sum that a copy has reached."""
        self._move()
        return self._copies[task].at

    def replan(self) -> None:
        """Compute the next event again: a changelog began or ceased to grow."""
        self._move()
        self._fall_behind()
        self._plan()

    def _fall_behind(self) -> None:
        """Mark the standbys as behind that have to wait for actives while their changelogs grow."""
        if not self._held_up():
            return
        for task in sorted(self._copies):
            copy = self._copies[task]
            if copy.at_end and self._ends.per_ms(task) > 0:
                copy.at_end = False
                self._caught_up(task, False)

    def _served(self) -> list[TaskId]:
        """Return the copies that are read now: actives, or else the standbys that are behind."""
        now_ms = self._moved_ms
        begun = [task for task, copy in self._copies.items() if copy.starts_ms <= now_ms]
        if any(copy.active for copy in self._copies.values()):
            return [task for task in begun if self._copies[task].active]
        return [task for task in begun if not self._copies[task].at_end]

    def _move(self) -> None:
        """Advance every copy to the present."""
        now_ms = self._time.now_ms
        passed_ms = now_ms - self._moved_ms
        if passed_ms <= 0:
            return
        served = self._served()
        share = self._per_ms * passed_ms / len(served) if served else 0.0
        for task in served:
            copy = self._copies[task]
            reached = min(copy.at + share, self._ends.end(task))
            self.read += max(reached - copy.at, 0.0)
            copy.at = max(copy.at, reached)
        if not self._held_up():
            for task, copy in self._copies.items():
                if copy.at_end:
                    end = self._ends.end(task)
                    self.read += end - copy.at
                    copy.at = end
        self._moved_ms = now_ms

    def _held_up(self) -> bool:
        return any(copy.active for copy in self._copies.values())

    def _plan(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None
        due_ms = self._due_in_ms()
        if due_ms is not None:
            self._next = self._time.after(due_ms, self._look)

    def _due_in_ms(self) -> int | None:
        """Return the time in ms until a copy reaches its end, or another begins.

        None without one.
        """
        now_ms = self._time.now_ms
        served = self._served()
        dues = [
            copy.starts_ms - now_ms for copy in self._copies.values() if copy.starts_ms > now_ms
        ]
        for task in served:
            left = self._ends.end(task) - self._copies[task].at
            if left <= _NEAR:
                return 0
            growth = 0.0 if self._copies[task].active else self._ends.per_ms(task)
            speed = self._per_ms / len(served) - growth
            if speed > 0:
                dues.append(max(ceil(left / speed), 1))
        return min(dues, default=None)

    def _look(self) -> None:
        """Update the copies that have reached their end, and plan the next event."""
        self._next = None
        self._move()
        done = [
            task
            for task in self._served()
            if self._ends.end(task) - self._copies[task].at <= _NEAR + self._ends.per_ms(task)
        ]
        actives = [task for task in done if self._copies[task].active]
        for task in actives:
            del self._copies[task]
        for task in done:
            if task in self._copies:
                self._copies[task].at_end = True
        self._plan()
        for task in sorted(done):
            if task in actives:
                self._restored(task)
            else:
                self._caught_up(task, True)
