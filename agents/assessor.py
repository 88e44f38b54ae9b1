"""Assess groups and reassignments every 2 s, and compare decisions of large groups.

All in short turns of the event loop, or in a thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Iterable

from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import FreezeOnGrowth, done_in_turns
from caughtup.models.reassignments.watch import shares_of
from caughtup.models.state.cluster import ClusterState

_INTERVAL_SECONDS = 2.0
#: With turns of 2 ms (``process/turns.py``) and this pause, assessing takes at most a fifth of the
#: event loop's time, and a request waits for one turn at most. Once every group was assessed, only what
#: changed is assessed again, and with the longer pause it takes a sixteenth at most.
_PAUSE_SECONDS, _LATER_PAUSE_SECONDS = 0.008, 0.03


class Assessor(Service):
    """Assesses groups, once ``__consumer_offsets`` was read to its end, and reassignments.

    ``budget_seconds``: how long a reassignment may take before it is slow.
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
        self._pause = _PAUSE_SECONDS

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

    @Service.task
    async def _run_decisions(self) -> None:
        while not self.should_stop:
            await self._decisions()
            await self.sleep(_INTERVAL_SECONDS)

    async def _decisions(self) -> None:
        """Decide the epochs of large groups again, one at a time: each may take a second."""
        decisions = self._state.group_decisions
        for large in decisions.take_large():
            with self._state.faults.isolated("decisions", large.group, now_ms()):
                decisions.apply_large(large, await asyncio.to_thread(large.decide), now_ms())

    async def _movements(self) -> None:
        """Assess every reassignment once."""
        tracker = self._state.reassignments
        watch = self._state.reassignment_watch
        faults, shares = self._state.faults, None
        with faults.isolated("reassignments", "throttles", now_ms()):
            # In a thread: for thousands of reassignments it takes 0.25 s.
            shares = await asyncio.to_thread(shares_of(tracker))
        now, budget = now_ms(), self._budget_seconds
        await done_in_turns(_each(watch.assess(tracker, now, budget, shares)), _PAUSE_SECONDS)

    async def _round(self) -> None:
        """Assess every group once."""
        await done_in_turns(self._groups(), self._pause)
        self._pause = _LATER_PAUSE_SECONDS

    def _groups(self) -> Generator[None, None, None]:
        known = 0
        for group in self._state.group_names():
            yield from _each(self._state.assess(group, now_ms(), self._health.read_ms))
            watch = self._state.watches.get(group)
            known += 1 if watch is None else 1 + len(watch.copies)
            self._freeze.reached(known)
            yield  # assess() yields nothing for a group at rest
        self._state.forget_gone()


def _each(steps: Iterable[object]) -> Generator[None, None, None]:
    for _ in steps:
        yield
