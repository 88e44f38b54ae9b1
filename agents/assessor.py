"""Works out how every group fares, again and again, without holding anybody up."""

from __future__ import annotations

import asyncio
import logging
import time

from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.health import Health
from caughtup.models.state import ClusterState

#: From the end of one round to the next; longer rounds wait for longer, so that this never takes
#: more than a fifth of the event loop's time.
_INTERVAL_SECONDS = 2.0
_ROUNDS_WAITED = 4
_TURN_SECONDS = 0.005


class Assessor(Service):
    """Assesses one group after the other, from the moment the log was read to its end."""

    logger = logging.getLogger("mode.caughtup")  # its own comings and goings

    def __init__(self, state: ClusterState, health: Health) -> None:
        super().__init__()
        self._state = state
        self._health = health

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            seconds = await self._round() if self._health.ready else 0.0
            await self.sleep(max(_INTERVAL_SECONDS, _ROUNDS_WAITED * seconds))

    async def _round(self) -> float:
        """Assess every group once; give the time it took."""
        began = turn = time.monotonic()
        groups = self._state.group_names()
        for group in groups:
            for _ in self._state.assessments.assess(self._state, group, now_ms()):
                if time.monotonic() - turn > _TURN_SECONDS:
                    await asyncio.sleep(0)
                    turn = time.monotonic()
        self._state.assessments.keep_only(set(groups))
        return time.monotonic() - began
