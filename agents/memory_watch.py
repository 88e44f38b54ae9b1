"""Say in the log and on ``/ready`` that the process nears its memory limit."""

from __future__ import annotations

import logging
from collections.abc import Callable

from mode import Service

from caughtup.agents.process.health import Health
from caughtup.agents.process.memory import limit_bytes, nearly_used, used_bytes

log = logging.getLogger(__name__)

#: While the log is read, memory grows by some 100 MB a second.
_LOOK_SECONDS = 0.5


class MemoryWatch(Service):
    """Looks at the process's memory twice a second, if it has a limit."""

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self,
        health: Health,
        limit: Callable[[], int | None] = limit_bytes,
        used: Callable[[], int | None] = used_bytes,
    ) -> None:
        super().__init__()
        self._health = health
        self._limit = limit
        self._used = used

    @Service.task
    async def _run(self) -> None:
        while self._limit() is not None and not self.should_stop:
            self.look()
            await self.sleep(_LOOK_SECONDS)

    def look(self) -> None:
        """Record whether the use nears the limit, and log it when it begins to."""
        before, self._health.memory = self._health.memory, nearly_used(self._used(), self._limit())
        if self._health.memory is not None and before is None:
            log.warning("memory: %s", self._health.memory)
