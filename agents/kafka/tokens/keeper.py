"""Keeps the service's token fresh, and says when there is no other one to be had."""

from __future__ import annotations

import asyncio
import logging

from mode import Service

from caughtup.agents.kafka.tokens.source import source_of
from caughtup.agents.kafka.tokens.token import TokenError
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.models.security.logins import Bearer, login_of

log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0


class TokenKeeper(Service):
    """Gets a token whenever one is due, whether or not somebody logs in just then.

    Connections that are there stay while there is none; what needs another one is tried again by
    its own client.
    """

    logger = logging.getLogger("mode.caughtup")  # its own comings and goings

    def __init__(self, settings: Settings, health: Health) -> None:
        super().__init__()
        self._settings = settings
        self._health = health
        self._needed = isinstance(login_of(settings.kafka), Bearer)

    @Service.task
    async def _run(self) -> None:
        while self._needed and not self.should_stop:
            await asyncio.to_thread(self.look)
            await self.sleep(_LOOK_SECONDS)

    def look(self) -> None:
        """Get a token if one is due, and say it when that begins to fail, and when it ends."""
        source = source_of(self._settings.kafka)
        try:
            source.token()
            failure = source.failure()
        except TokenError as error:
            failure = str(error)
        if failure != self._health.login:
            if failure is None:
                log.info("tokens can be had again")
            else:
                log.warning("%s; trying again; existing connections stay open", failure)
        self._health.login = failure
