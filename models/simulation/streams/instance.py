"""A Kafka Streams instance in virtual time: its threads, and the states in its directory."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.ids import ProcessId, TaskId
from caughtup.models.simulation.streams.shared_state import SharedState
from caughtup.models.simulation.virtual_time import Event


class SimulatedInstance:
    """One process. ``states`` are those on disk that no thread has open: offset sums by task.

    ``flushed`` is the offset sum of each open state when it was opened: a kill leaves that on disk.
    ``answers`` is whether it runs: False once stopped, killed, or while paused. ``members`` are the
    member ids of its threads, the first of which reports the states on disk. ``restores`` is its
    speed of restoring, as a share of the application's.
    """

    def __init__(
        self,
        shared: SharedState,
        name: str,
        process: ProcessId,
        threads: int,
        *,
        tags: Mapping[str, str],
        rack: str | None,
        restores: float = 1.0,
    ) -> None:
        self._shared = shared
        self.name = name
        self.process = process
        self.tags = tags
        self.rack = rack
        self.restores = restores
        self.answers = False
        self.states: dict[TaskId, float] = {}
        self.flushed: dict[TaskId, float] = {}
        self.members: list[str] = []
        self.thread_count = threads
        self._starts = 0
        self._cleaning: dict[TaskId, Event] = {}

    def start(self) -> list[str]:
        """Start, and return the member ids of its threads, which are new each time."""
        self._starts += 1
        self.answers = True
        self.members = [
            f"{self.name}-{number}-{self._starts}" for number in range(1, self.thread_count + 1)
        ]
        return self.members

    def pause(self) -> None:
        """Stop sending heartbeats and processing, until ``go_on``."""
        self.answers = False

    def go_on(self) -> None:
        """Run again after a pause."""
        self.answers = True

    def renew(self, member_id: str) -> str:
        """Return a new member id for a thread that is no longer in its group."""
        new = f"{member_id}-again"
        self.members = [new if one == member_id else one for one in self.members]
        return new

    def end(self) -> None:
        """Stop running."""
        self.answers = False
        self.members = []

    def lose_states(self) -> None:
        """Delete the states on disk."""
        self.states.clear()

    def take_state(self, task: TaskId) -> float:
        """Open a state, and return its offset sum, or 0 if there is none."""
        cleaning = self._cleaning.pop(task, None)
        if cleaning is not None:
            cleaning.cancel()
        at = self.flushed[task] = self.states.pop(task, 0.0)
        return at

    def leave_state(self, task: TaskId, at: float, *, checkpoint: bool) -> None:
        """Close a state and leave it on disk, which is cleaned up unless it is opened in time.

        Without ``checkpoint``, after a kill, the part in memory is lost: the most possible, if it
        is unknown when the state was opened.
        """
        every = self._shared.application.flush_offsets
        flushed = self.flushed.pop(task, max(at - every, 0.0))
        if not checkpoint:
            at = flushed + (at - flushed) // every * every
        if at <= 0:
            return
        self.states[task] = at
        self._cleaning[task] = self._shared.time.after(
            self._shared.application.cleanup_delay_ms, lambda: self._clean(task)
        )

    def unowned_states(self, member_id: str) -> dict[TaskId, float]:
        """Return the states on disk that a thread reports: the first one locks them all."""
        return self.states if self.members[:1] == [member_id] else {}

    def _clean(self, task: TaskId) -> None:
        self._cleaning.pop(task, None)
        if self.answers:
            self.states.pop(task, None)
