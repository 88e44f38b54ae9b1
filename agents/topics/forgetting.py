"""Forget groups that are gone, and write tombstones for what was published about them."""

from __future__ import annotations

import logging

from confluent_kafka import KafkaException
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.process.health import Health
from caughtup.agents.topics.publisher import TopicWriter
from caughtup.models.records.keys import encode_group
from caughtup.models.state.cluster import ClusterState
from caughtup.models.state.forgetting import Forgetting

log = logging.getLogger(__name__)

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
