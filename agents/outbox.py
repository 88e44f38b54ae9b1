"""Records that have to get to Kafka, in their order, however often that fails."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping
from itertools import islice
from typing import NamedTuple

from confluent_kafka import KafkaException

from caughtup.agents.publisher import OwnTopicWriter

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
#: Records on their way at once.
_AT_ONCE = 100


class Outgoing(NamedTuple):
    """A record to be sent."""

    topic: OwnTopicWriter
    key: bytes
    value: bytes
    headers: Mapping[str, bytes] | None = None


class Outbox:
    """Keeps records until their brokers have them. For one agent, and every start of it."""

    def __init__(self) -> None:
        self._waiting: deque[Outgoing] = deque()
        self._failing = False

    def put(
        self,
        topic: OwnTopicWriter,
        key: bytes,
        value: bytes,
        *,
        headers: Mapping[str, bytes] | None = None,
    ) -> None:
        """Add a record behind those that wait."""
        self._waiting.append(Outgoing(topic, key, value, headers))

    async def flush(self) -> None:
        """Return once all of them are on their topics; what fails is tried again until then.

        A record whose acknowledgement is lost, not the record, is there twice.
        """
        while self._waiting:
            try:
                await self._send_some()
                self._failing = False
            except KafkaException as error:
                if not self._failing:
                    reason = error.args[0].str()
                    log.warning(
                        "writing to %s: %s; trying again", self._waiting[0].topic.name, reason
                    )
                self._failing = True
                await asyncio.sleep(_RETRY_SECONDS)

    async def _send_some(self) -> None:
        """Send the first ones, and drop those that are acknowledged, up to the first that isn't."""
        first = self._waiting[0].topic
        acknowledged = []
        for topic, key, value, headers in tuple(islice(self._waiting, _AT_ONCE)):
            if topic is not first:
                break  # what follows from a decision is written after it
            acknowledged.append(await topic.send(key=key, value=value, headers=headers))
        for each in acknowledged:
            await each
            self._waiting.popleft()
