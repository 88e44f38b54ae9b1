"""Which tasks have shared a client during a decision: the sticky assignor mixes them up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from caughtup.models.assignment.client_state import ClientState
from caughtup.models.ids import TaskId


class TaskPairs:
    """The pairs of tasks that have been on one client, asked for while standbys are placed.

    Two actives are a pair if they were dealt to one client, wherever they went afterwards; a
    standby pairs with whatever its client has then and gets later. Sets of tasks are kept as
    bits, so that a question takes a few operations instead of one for each pair of tasks.
    While actives are dealt there is nothing to ask: a task that was never placed has no pairs.

    Source: LegacyStickyTaskAssignor.TaskPairs.
    """

    def __init__(
        self, dealt: Sequence[AbstractSet[TaskId]], clients: Sequence[ClientState]
    ) -> None:
        """Keep the actives of each client as first assigned, and the clients as they are now."""
        self._numbers = {
            task: number for number, task in enumerate(sorted(set[TaskId]().union(*dealt)))
        }
        self._dealt = {}
        for tasks in dealt:
            self._dealt.update(dict.fromkeys(tasks, self._bits(tasks)))
        self._active = [self._bits(client.active) for client in clients]
        self._standby = [self._bits(client.standby) for client in clients]

    def companions(self, task: TaskId, holders: Iterable[int]) -> int:
        """Return a task's pairs, as bits; ``holders`` are its clients' places."""
        own = 1 << self._numbers[task]
        paired = self._dealt[task]
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
