"""Keeps the service's own topics: makes those that are deleted anew, and tells of what is wrong."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from mode import Service

from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import rdkafka_config
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.topics.checks import check_topics, look_at_topics
from caughtup.agents.topics.definitions import create_topics

log = logging.getLogger(__name__)

PROBE = "topics"
_LOOK_SECONDS = 2.0
#: Configs change seldom, and asking for them costs the brokers more.
_CHECK_SECONDS = 300.0


class TopicKeeper(Service):
    """Looks at own topics every other second, and at their configs every few minutes.

    ``recreated`` is told the full name of a topic that was made anew, by whomever: whoever wrote
    it writes everything again, and whoever read it reads it from its start. Only the active
    instance makes topics.
    """

    logger = logging.getLogger("mode.caughtup")  # its own comings and goings

    def __init__(
        self, settings: Settings, health: Health, recreated: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._settings = settings
        self._admin = AdminClient(rdkafka_config(settings))
        self._health = health
        self._recreated = recreated
        self._ids: dict[str, str] = {}
        self._check_at = 0.0

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            try:
                if await self._look():
                    continue  # see at once what was made
                self._health.recovered(PROBE)
            except KafkaException as error:
                if self._health.failed(PROBE):
                    log.warning("looking at own topics: %s", error.args[0].str())
            await self.sleep(_LOOK_SECONDS)

    async def _look(self) -> bool:
        """Look once, and return whether topics were made."""
        look = await asyncio.to_thread(look_at_topics, self._admin, self._settings)
        for name, seen in look.there.items():
            known = self._ids.get(name)
            self._ids[name] = seen.topic_id
            if known not in (None, seen.topic_id):
                log.warning("%s was made anew: reading and writing it from its start", name)
                self._check_at = 0.0
                self._recreated(name)
        if look.gone and await self._make(look.gone):
            return True
        if not look.gone:
            hidden = [f"{name}: {why}" for name, why in sorted(look.hidden.items())]
            self._health.hinder(PROBE, "; ".join(hidden) or None)
        if time.monotonic() >= self._check_at:
            self._note(await asyncio.to_thread(check_topics, self._admin, self._settings, look))
            self._check_at = time.monotonic() + _CHECK_SECONDS
        return False

    async def _make(self, gone: tuple[str, ...]) -> bool:
        """Make topics that are gone, unless another instance does, and return whether it worked."""
        why = f"{', '.join(gone)} {'is' if len(gone) == 1 else 'are'} gone"
        self._health.hinder(PROBE, why)
        if self._health.standby is not None:
            return False
        log.warning("%s: making them anew", why)
        try:
            made = await asyncio.to_thread(create_topics, self._settings, gone)
        except UserError as error:
            self._health.hinder(PROBE, f"{why}: {error.message}")
            return False
        return bool(made)

    def _note(self, found: Mapping[str, Mapping[str, str] | None]) -> None:
        problems = {
            (topic, problem): why
            for topic, said in found.items()
            for problem, why in (said or {}).items()
        }
        for key in sorted(problems.keys() - self._health.topic_problems.keys()):
            log.warning("%s: %s", key[0], problems[key])
        self._health.topic_problems = problems
