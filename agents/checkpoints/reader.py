"""Read Spark's checkpoints at intervals, in a thread, and apply them to the state."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from mode import Service

from caughtup.agents.checkpoints.reading import CheckpointLooks
from caughtup.agents.clock import now_ms
from caughtup.agents.configuration.s3_access import s3_variables
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_in_turns
from caughtup.agents.settings import Settings
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.spark_looks import apply_looks

PROBE = "checkpoints"
#: The pause between two turns of applying.
_PAUSE_SECONDS = 0.008


class CheckpointReader(Service):
    """Reads the checkpoints that the settings name.

    A store that never answers blocks only this service: all queries get old then.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(self, settings: Settings, health: Health, state: ClusterState) -> None:
        super().__init__()
        self._settings = settings
        self._health = health
        self._state = state

    @Service.task
    async def _run(self) -> None:
        s3 = partial(s3_variables, self._settings)
        looks = CheckpointLooks(self._settings.spark_checkpoints, s3)
        thread = ThreadPoolExecutor(1, "checkpoints")
        try:
            while not self.should_stop:
                await self._look(looks, thread)
                await self.sleep(self._settings.spark_checkpoints_interval)
        finally:
            thread.shutdown(wait=False, cancel_futures=True)

    async def _look(self, looks: CheckpointLooks, thread: ThreadPoolExecutor) -> None:
        loop, at_ms = asyncio.get_running_loop(), now_ms()
        found = await loop.run_in_executor(thread, looks.look, self._state.spark.known(), at_ms)
        await done_in_turns(apply_looks(self._state, found, now_ms()), _PAUSE_SECONDS)
        self._health.succeeded(PROBE, at_ms)  # unreadable checkpoints are shown as problems
