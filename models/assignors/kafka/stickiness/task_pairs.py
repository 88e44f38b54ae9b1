"""The pairs of tasks that share a client, which the sticky assignors count as ints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.assignment.scenario import Scenario
from caughtup.models.errors import ScenarioError
from caughtup.models.ids import TaskId

_INT_MAX = (1 << 31) - 1


def require_countable(scenario: Scenario) -> None:
    """Raise ScenarioError ``unsupported`` for a scenario in which Kafka's own counts overflow."""
    tasks = len(scenario.stateful) + len(scenario.stateless)
    if tasks * (tasks - 1) > _INT_MAX:
        raise ScenarioError(
            "unsupported", f"tasks: {tasks:,} are more than the 46,341 that this assignor can count"
        )
    threads = sum(client.capacity for client in scenario.clients)
    if threads > _INT_MAX:
        raise ScenarioError(
            "unsupported", f"clients: {threads:,} stream threads are more than {_INT_MAX:,}"
        )


class TaskPairs:
    """The pairs of tasks that have shared a client; used while standbys are placed.

    Two actives are a pair if they were first assigned to one client, wherever they went afterwards;
    a standby pairs with all tasks that its client has then and gets later. Sets of tasks are bits
    of an int, so that a lookup takes a few operations instead of one for each pair. While actives
    are assigned there is nothing to look up: a task that was never placed has no pairs.

    Source: LegacyStickyTaskAssignor.TaskPairs.
    """

    def __init__(
        self, first_actives: Sequence[AbstractSet[TaskId]], clients: Sequence[ClientState]
    ) -> None:
        """Prepare the pairs of each client's first actives, and of its present tasks."""
        self._numbers = {
            task: number for number, task in enumerate(sorted(set[TaskId]().union(*first_actives)))
        }
        self._first_actives = {}
        for tasks in first_actives:
            self._first_actives.update(dict.fromkeys(tasks, self._bits(tasks)))
        self._active = [self._bits(client.active) for client in clients]
        self._standby = [self._bits(client.standby) for client in clients]

    def companions(self, task: TaskId, holders: Iterable[int]) -> int:
        """Return the tasks that are paired with a task, as bits.

        ``holders`` are its clients' places.
        """
        own = 1 << self._numbers[task]
        paired = self._first_actives[task]
        for place in holders:
            paired |= self._standby[place]
            if self._standby[place] & own:
                paired |= self._active[place]
        return paired

    def has_new(self, place: int, companions: int) -> bool:
        """Return whether a client has a task that isn't among the companions."""
        return bool((self._active[place] | self._standby[place]) & ~companions)

    def add_standby(self, task: TaskId, place: int) -> None:
        """Add a standby that a client was assigned."""
        self._standby[place] |= 1 << self._numbers[task]

    def _bits(self, tasks: Iterable[TaskId]) -> int:
        bits = 0
        for task in tasks:
            bits |= 1 << self._numbers[task]
        return bits
