"""Keep the service's token fresh, and report when no new one can be got."""

from __future__ import annotations

import asyncio
import logging

from mode import Service

from caughtup.agents.kafka.tokens.source import token_source
from caughtup.agents.kafka.tokens.token import TokenError
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.models.security.logins import Bearer, login_of

log = logging.getLogger(__name__)

_LOOK_SECONDS = 2.0


class TokenKeeper(Service):
    """Gets a new token whenever one is due, also while no client logs in.

    Open connections stay while there is no token; clients retry new ones by themselves.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

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
        """Get a token if one is due; log when that begins to fail, and when it works again."""
        source = token_source(self._settings.kafka)
        try:
            source.token()
            failure = source.failure()
        except TokenError as error:
            failure = str(error)
        if failure != self._health.login:
            if failure is None:
                log.info("the token source works again")
            else:
                log.warning("%s; trying again; existing connections stay open", failure)
        self._health.login = failure
