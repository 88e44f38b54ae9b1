"""Works out how groups and reassignments fare, again and again, without holding anybody up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Iterable

from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.process.garbage import FreezeOnGrowth
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_in_turns
from caughtup.models.reassignments.watch import shares_of
from caughtup.models.state.cluster import ClusterState

_INTERVAL_SECONDS = 2.0
#: Of a turn (``process/turns.py``: 2 ms) and so long a pause, this takes a fifth of the event loop's
#: time at most, and a request that comes meanwhile waits for one turn.
_PAUSE_SECONDS = 0.008


class Assessor(Service):
    """Assesses one group after the other, from the moment the log was read to its end.

    And one reassignment after the other, from the first observation of them. ``budget_seconds``:
    how long one of these may take before it is slow.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self, state: ClusterState, health: Health, budget_seconds: float | None = None
    ) -> None:
        super().__init__()
        self._budget_seconds = budget_seconds
        self._state = state
        self._health = health
        self._freeze = FreezeOnGrowth()

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            if self._health.ready:
                await self._round()
            await self.sleep(_INTERVAL_SECONDS)

    @Service.task
    async def _run_movements(self) -> None:
        while not self.should_stop:
            await self._movements()
            await self.sleep(_INTERVAL_SECONDS)

    async def _movements(self) -> None:
        """Assess every reassignment once."""
        tracker = self._state.reassignments
        watch = self._state.reassignment_watch
        faults, shares = self._state.faults, None
        with faults.isolated("reassignments", "throttles", now_ms()):
            # Of thousands that takes a quarter of a second.
            shares = await asyncio.to_thread(shares_of(tracker))
        now, budget = now_ms(), self._budget_seconds
        await done_in_turns(_each(watch.assess(tracker, now, budget, shares)), _PAUSE_SECONDS)

    async def _round(self) -> None:
        """Assess every group once."""
        await done_in_turns(self._groups(), _PAUSE_SECONDS)

    def _groups(self) -> Generator[None, None, None]:
        groups = self._state.group_names()
        known = 0
        for group in groups:
            yield from _each(self._state.assess(group, now_ms(), self._health.read_ms))
            watch = self._state.watches.get(group)
            known += 1 if watch is None else 1 + len(watch.copies)
            self._freeze.reached(known)
            yield  # a group at rest takes no step of its own
        self._state.forget_all_but(set(groups))


def _each(steps: Iterable[object]) -> Generator[None, None, None]:
    for _ in steps:
        yield
