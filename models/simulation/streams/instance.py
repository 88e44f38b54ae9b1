"""A Kafka Streams instance in virtual time: its threads, and the states in its directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.simulation.streams.thread import StreamThread
from caughtup.models.simulation.virtual_time import Event

if TYPE_CHECKING:
    from caughtup.models.simulation.streams.run import StreamsRun


class Instance:
    """One process. ``states`` are those on disk that no thread has: offset sums by task.

    ``answers`` is whether it runs: False once stopped, killed, or while paused.
    """

    def __init__(
        self,
        run: StreamsRun,
        name: str,
        process: ProcessId,
        threads: int,
        *,
        tags: Mapping[str, str],
        rack: str | None,
    ) -> None:
        self.run = run
        self.name = name
        self.process = process
        self.tags = tags
        self.rack = rack
        self.answers = False
        self.states: dict[TaskId, float] = {}
        self._count = threads
        self._starts = 0
        self._cleaning: dict[TaskId, Event] = {}
        self.threads: list[StreamThread] = []

    def start(self, ask: Callable[[str], None]) -> list[StreamThread]:
        """Start its threads, new members each, and return them."""
        self._starts += 1
        self.answers = True
        self.threads = [
            StreamThread(self, f"{self.name}-{number}-{self._starts}", ask)
            for number in range(1, self._count + 1)
        ]
        return self.threads

    def stop(self, *, checkpoint: bool) -> list[StreamThread]:
        """Stop its threads and return them. Without ``checkpoint`` what they had open is lost."""
        self.answers = False
        stopped, self.threads = self.threads, []
        for thread in stopped:
            thread.stop(checkpoint=checkpoint)
        return stopped

    def lose_states(self) -> None:
        """Lose what is on disk."""
        self.states.clear()

    def take_state(self, task: TaskId) -> float:
        """Open a state that is on disk or that another thread has as a standby; 0 without one."""
        cleaning = self._cleaning.pop(task, None)
        if cleaning is not None:
            cleaning.cancel()
        return self.states.pop(task, 0.0)

    def leave_state(self, task: TaskId, at: float, *, checkpoint: bool) -> None:
        """Leave a state on disk, which is cleaned up if nobody opens it for a while."""
        if not checkpoint or at <= 0:
            return
        self.states[task] = at
        self._cleaning[task] = self.run.time.after(
            self.run.application.cleanup_delay_ms, lambda: self._clean(task)
        )

    def unowned_states(self, thread: StreamThread) -> dict[TaskId, float]:
        """Return the states on disk that a thread reports: the first to ask locks them all."""
        return self.states if self.threads and thread is self.threads[0] else {}

    def _clean(self, task: TaskId) -> None:
        self._cleaning.pop(task, None)
        if self.answers:
            self.states.pop(task, None)
