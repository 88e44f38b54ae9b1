"""Works out how groups and reassignments fare, again and again, without holding anybody up."""

from __future__ import annotations

import asyncio
import logging
import time

from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.process.garbage import Settling
from caughtup.agents.process.health import Health
from caughtup.models.reassignments.watch import shares_of
from caughtup.models.state.cluster import ClusterState

_INTERVAL_SECONDS = 2.0
#: Of so long a turn and so long a pause, this takes a fifth of the event loop's time at most, and
#: a request that comes meanwhile waits for one turn.
_TURN_SECONDS = 0.002
_PAUSE_SECONDS = 0.008


class Assessor(Service):
    """Assesses one group after the other, from the moment the log was read to its end.

    And one partition in movement after the other, from the first look at them. ``budget_seconds``:
    how long one of these may take before it is slow.
    """

    logger = logging.getLogger("mode.caughtup")  # its own comings and goings

    def __init__(
        self, state: ClusterState, health: Health, budget_seconds: float | None = None
    ) -> None:
        super().__init__()
        self._budget_seconds = budget_seconds
        self._state = state
        self._health = health
        self._settling = Settling()

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
        """Assess every partition in movement once."""
        tracker = self._state.reassignments
        watch = self._state.reassignment_watch
        faults, shares = self._state.faults, None
        with faults.isolated("reassignments", "throttles", now_ms()):
            # Of thousands that takes a quarter of a second.
            shares = await asyncio.to_thread(shares_of(tracker))
        turn = time.monotonic()
        for _ in watch.assess(tracker, now_ms(), self._budget_seconds, shares):
            if time.monotonic() - turn > _TURN_SECONDS:
                await asyncio.sleep(_PAUSE_SECONDS)
                turn = time.monotonic()

    async def _round(self) -> None:
        """Assess every group once."""
        turn = time.monotonic()
        groups = self._state.group_names()
        known = 0
        for group in groups:
            for _ in self._state.assess(group, now_ms(), self._health.read_ms):
                if time.monotonic() - turn > _TURN_SECONDS:
                    await asyncio.sleep(_PAUSE_SECONDS)
                    turn = time.monotonic()
            watch = self._state.watches.get(group)
            known += 1 if watch is None else 1 + len(watch.copies)
            self._settling.reached(known)
        self._state.forget_all_but(set(groups))
