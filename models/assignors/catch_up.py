"""Which clients are caught up on a task, and how far behind the others are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from caughtup.models.assignors.client_state import ClientState
from caughtup.models.ids import TaskId

#: The lag of a task that runs as an active on that client (Task.LATEST_OFFSET).
RUNNING = -2
#: The lag of a task whose offsets that client couldn't tell (UNKNOWN_OFFSET_SUM).
UNKNOWN = -3
#: An acceptable.recovery.lag of Long.MAX_VALUE accepts any lag, an unknown one too.
UNBOUNDED = (1 << 63) - 1


def is_caught_up(lag: int, acceptable: int) -> bool:
    """Tell whether a copy with this lag, in offsets, can take over at once.

    Source: HighAvailabilityTaskAssignor.tasksToCaughtUpClients.
    """
    return lag == RUNNING or acceptable == UNBOUNDED or 0 <= lag <= acceptable


class CatchUp:
    """The lags of every task on every client, which stay as they are during a decision."""

    def __init__(self, clients: Sequence[ClientState], acceptable: int) -> None:
        self._clients = clients
        self._acceptable = acceptable
        self._caught_up: dict[TaskId, frozenset[int]] = {}
        self._least: dict[TaskId, int] = {}

    def caught_up(self, task: TaskId) -> frozenset[int]:
        """Name the clients, by their places, that are caught up on the task."""
        known = self._caught_up.get(task)
        if known is None:
            known = self._caught_up[task] = frozenset(
                place
                for place, client in enumerate(self._clients)
                if is_caught_up(client.lags[task], self._acceptable)
            )
        return known

    def should_wait(self, task: TaskId, place: int) -> bool:
        """Tell whether this client is not caught up on the task while another one lags less.

        An unknown lag (-3) counts as less than any other. Source:
        TaskMovement.taskIsNotCaughtUpOnClientAndOtherMoreCaughtUpClientsExist.
        """
        lag = self._clients[place].lags[task]
        if is_caught_up(lag, self._acceptable):
            return False
        least = self._least.get(task)
        if least is None:
            least = self._least[task] = min(client.lags[task] for client in self._clients)
        return least < lag

    def most_caught_up(self, task: TaskId, before: int, eligible: Iterable[int]) -> int | None:
        """Find the eligible client first in (lag, process id) among those before client ``before``.

        Source: TaskMovement.mostCaughtUpEligibleClient.
        """
        clients = self._clients
        own = (clients[before].lags[task], before)
        nearer = [rank for c in eligible if (rank := (clients[c].lags[task], c)) < own]
        return min(nearer)[1] if nearer else None
