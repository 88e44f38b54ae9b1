"""A client during a decision: the tasks that it has been assigned so far, its load and its bound."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.assignment.scenario import Client
from caughtup.models.ids import ProcessId, TaskId


def most_actives(capacity: int, tasks: int, threads: int) -> int:
    """Return the most active tasks that a process with ``capacity`` of all ``threads`` is assigned.

    That is what HighAvailabilityTaskAssignor's balance allows (no process has more than one task
    per thread more than another), and one more, without which two processes that have reached the
    bound could never exchange tasks.
    """
    return capacity * (tasks + threads - capacity) // threads + 1


class ClientState:
    """The tasks that one process has been assigned so far. Source: Kafka's internal ClientState."""

    __slots__ = ("active", "capacity", "lags", "process_id", "standby")

    def __init__(self, client: Client) -> None:
        self.process_id: ProcessId = client.process_id
        self.capacity: int = client.capacity
        self.lags: Mapping[TaskId, int] = client.lags
        self.active: set[TaskId] = set()
        self.standby: set[TaskId] = set()

    def has(self, task: TaskId) -> bool:
        """Return whether the client has been assigned the task, as an active or as a standby."""
        return task in self.active or task in self.standby

    def task_count(self) -> int:
        """Return the number of actives and standbys that the client has been assigned."""
        return len(self.active) + len(self.standby)

    def task_load(self) -> float:
        """Return the tasks per stream thread, actives and standbys."""
        return (len(self.active) + len(self.standby)) / self.capacity

    def active_load(self) -> float:
        """Return the active tasks per stream thread."""
        return len(self.active) / self.capacity
