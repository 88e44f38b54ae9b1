"""Maintain the service's own topics: recreate deleted ones, report problems, write tombstones."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaException
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.clients import admin_client
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.topics.checks import check_topics, describe_topics
from caughtup.agents.topics.definitions import create_topics
from caughtup.agents.topics.publisher import TopicWriter
from caughtup.models.records.keys import encode_group
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.forgetting import Forgetting

log = logging.getLogger(__name__)

PROBE = "topics"
_DESCRIBE_SECONDS = 2.0
#: Configs are read less often: they change seldom, and cost the brokers more.
_CHECK_SECONDS = 300.0


class TopicKeeper(Service):
    """Describes own topics every 2 s, and their configs every 5 minutes.

    ``recreated`` is called with the full name of a topic that was recreated, by us or others: its
    writers have to write everything again, its readers to read from its start. Only the active
    instance creates topics.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(
        self, settings: Settings, health: Health, recreated: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._settings = settings
        self._admin = admin_client(settings)
        self._health = health
        self._recreated = recreated
        self._ids: dict[str, str] = {}
        self._check_at = 0.0

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            try:
                if await self._check():
                    continue  # describe the created topics at once
                self._health.recovered(PROBE)
            except KafkaException as error:
                if self._health.failed(PROBE):
                    log.warning("describing own topics: %s", error.args[0].str())
            await self.sleep(_DESCRIBE_SECONDS)

    async def _check(self) -> bool:
        """Describe the topics and create missing ones; return whether any was created."""
        described = await asyncio.to_thread(describe_topics, self._admin, self._settings)
        for name, topic in described.existing.items():
            known = self._ids.get(name)
            self._ids[name] = topic.topic_id
            if known not in (None, topic.topic_id):
                log.warning("%s was recreated: reading and writing it from its start", name)
                self._check_at = 0.0
                self._recreated(name)
        if described.missing and await self._create(described.missing):
            return True
        if not described.missing:
            hidden = [f"{name}: {why}" for name, why in sorted(described.hidden.items())]
            self._health.hinder(PROBE, "; ".join(hidden) or None)
        if time.monotonic() >= self._check_at:
            self._note(
                await asyncio.to_thread(check_topics, self._admin, self._settings, described)
            )
            self._check_at = time.monotonic() + _CHECK_SECONDS
        return False

    async def _create(self, missing: tuple[str, ...]) -> bool:
        """Create missing topics if this instance is active; return whether any was created."""
        why = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} gone"
        self._health.hinder(PROBE, why)
        if self._health.standby is not None or not self._health.cluster_wide():
            return False
        log.warning("%s: creating them again", why)
        try:
            created = await asyncio.to_thread(create_topics, self._settings, missing)
        except UserError as error:
            self._health.hinder(PROBE, f"{why}: {error.message}")
            return False
        return bool(created)

    def _note(self, found: Mapping[str, Mapping[str, str] | None]) -> None:
        current = {
            (topic, problem): why
            for topic, problems in found.items()
            for problem, why in (problems or {}).items()
        }
        for key in sorted(current.keys() - self._health.topic_problems.keys()):
            log.warning("%s: %s", key[0], current[key])
        self._health.topic_problems = current


_INTERVAL_SECONDS = 30.0


class Forgetter(Service):
    """Forgets every 30 s, once ``__consumer_offsets`` was read to its end.

    ``topics`` are those with a record for each group.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(self, state: ClusterState, health: Health, *topics: TopicWriter) -> None:
        super().__init__()
        self._state = state
        self._health = health
        self._topics = topics
        self._forgetting = Forgetting(state)
        #: Groups whose tombstones are still to be written.
        self._to_withdraw: set[str] = set()

    @Service.task
    async def _run(self) -> None:
        while not self.should_stop:
            await self.sleep(_INTERVAL_SECONDS)
            if self._health.is_alive:
                await self.forget(now_ms())

    async def forget(self, at_ms: int) -> None:
        """Forget the groups that are gone at a time (ms), and write their tombstones."""
        with self._state.faults.isolated("forgetting", "a round", at_ms):
            self._to_withdraw.update(self._forgetting.forget(at_ms))
        # A group that came back has a new recommendation, which has to stay.
        self._to_withdraw -= self._state.applications.groups_with_records()
        try:
            for group in sorted(self._to_withdraw):
                for topic in self._topics:
                    await (await topic.send(key=encode_group(group), value=None))
                self._to_withdraw.discard(group)
        except KafkaException as error:
            log.warning("writing tombstones for what was published: %s; trying again", error)
