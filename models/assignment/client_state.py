"""The clients during a decision: their assigned tasks and load, and which are caught up on a task."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from caughtup.models.assignment.configs import NEWEST, Release
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


#: The lag of a task that runs as an active on that client (Task.LATEST_OFFSET).
RUNNING = -2
#: The lag of a task whose offsets the client did not know (UNKNOWN_OFFSET_SUM).
UNKNOWN = -3
#: An acceptable.recovery.lag of Long.MAX_VALUE accepts any lag, an unknown one too.
UNBOUNDED = (1 << 63) - 1


def is_caught_up(lag: int, acceptable: int) -> bool:
    """Return whether a copy with this lag, in offsets, can take over at once.

    Source: HighAvailabilityTaskAssignor.tasksToCaughtUpClients.
    """
    return lag == RUNNING or acceptable == UNBOUNDED or 0 <= lag <= acceptable


class CatchUp:
    """The lag of each stateful task on each client, constant during a decision.

    Which clients are caught up on a task, and which lag least, is computed on first use: in most
    groups few tasks wait for a client.
    """

    def __init__(
        self,
        clients: Sequence[ClientState],
        tasks: Sequence[TaskId],
        acceptable: int,
        *,
        release: Release = NEWEST,
    ) -> None:
        by_client = [map(client.lags.__getitem__, tasks) for client in clients]
        self._lags = dict(zip(tasks, zip(*by_client, strict=True), strict=True))
        self._least = {task: min(lags) for task, lags in self._lags.items()}
        self._acceptable = acceptable
        #: Before 3.2 a task moves only to a caught-up client; without one it stays put.
        self._only_to_caught_up = release < Release.V3_2
        self._caught_up: dict[TaskId, frozenset[int]] = {}
        self._by_lag: dict[TaskId, list[int]] = {}

    def caught_up(self, task: TaskId) -> frozenset[int]:
        """Return the places of the clients that are caught up on the task."""
        known = self._caught_up.get(task)
        if known is None:
            lags = self._lags[task]
            # Many clients have the same lag, most often the one of a client without state.
            good = {lag for lag in set(lags) if is_caught_up(lag, self._acceptable)}
            if sum(map(lags.count, good)) > 1:
                known = frozenset(place for place, lag in enumerate(lags) if lag in good)
            else:  # no client, or only the one that runs it
                known = frozenset(map(lags.index, good))
            self._caught_up[task] = known
        return known

    def waiting(self, place: int, tasks: Iterable[TaskId]) -> list[TaskId]:
        """Return the tasks that this client is not caught up on while another client lags less.

        An unknown lag (-3) counts as less than any other. Before 3.2 the other client has to be
        caught up. Source: TaskMovement.taskIsNotCaughtUpOnClientAndOtherMoreCaughtUpClientsExist.
        """
        lags, least, acceptable = self._lags, self._least, self._acceptable
        if self._only_to_caught_up:
            return [
                task
                for task in tasks
                if not is_caught_up(lags[task][place], acceptable) and self.caught_up(task)
            ]
        return [
            task
            for task in tasks
            if (lag := lags[task][place]) > least[task] and not is_caught_up(lag, acceptable)
        ]

    def most_caught_up(self, task: TaskId, before: int, holders: Container[int]) -> int | None:
        """Return the place of the first client by (lag, process id) that is not in ``holders``.

        Only clients that come before client ``before`` in this order count; None if there is none,
        and always before 3.2. Source: TaskMovement.mostCaughtUpEligibleClient.
        """
        if self._only_to_caught_up:
            return None
        by_lag = self._by_lag.get(task)
        if by_lag is None:
            lags = self._lags[task]
            by_lag = self._by_lag[task] = sorted(range(len(lags)), key=lags.__getitem__)
        for place in by_lag:
            if place == before:
                return None
            if place not in holders:
                return place
        return None
