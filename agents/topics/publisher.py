"""Write to the service's own topics, only while this instance is active.

What must be said once goes in transactions (``fenced.py``), everything else by a plain producer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Container, Mapping
from functools import partial
from threading import Event, Thread
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException, Message
from mode import Service

from caughtup.agents.kafka.clients import producer
from caughtup.agents.process.health import PUBLISHER, Health
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import topic_name
from caughtup.agents.topics.fenced import PROBE, RECORDS, FencedRecord, FencedWriter
from caughtup.agents.topics.read_to_end import read_topic
from caughtup.models.records.topics import SAID_ONCE

log = logging.getLogger(__name__)

_CONFIG: dict[str, object] = {
    **RECORDS,
    # Keeps the order after failures, without the state that an idempotent producer can lose.
    "max.in.flight.requests.per.connection": 1,
    # A request without an answer may have been written; a retry would write it twice.
    "retries": 0,
}
#: If a topic accepts nothing for this time while another one does, the client is replaced.
_STUCK_SECONDS = 10.0
#: After this time all records of a client are acknowledged or given up.
_DRAINED_SECONDS = 6.0
_POLL_SECONDS = 0.2
_PAUSE_SECONDS = 0.05
FLUSH_SECONDS = 2.0

Acknowledged = asyncio.Future[None]
Headers = Mapping[str, bytes] | None
#: The key and the value of a record.
Record = tuple[bytes | None, bytes | None]


class Publisher(Service):
    """Sends records; each call returns a future that is done when brokers have the record.

    ``may_publish`` is called before each record; while it returns False, the sender waits.
    """

    logger = logging.getLogger("mode.caughtup")  # for the messages of mode's Service

    def __init__(self, settings: Settings, health: Health, may_publish: Callable[[], bool]) -> None:
        super().__init__()
        self._settings = settings
        self._health = health
        self._may_publish = may_publish
        self._producer = producer(settings, **_CONFIG)
        self.fence = FencedWriter(settings, health, may_publish)
        #: True while the client is being replaced: no record may overtake one of the old client.
        self._replacing = False
        #: By topic: the time (s, monotonic) since which every record for it has failed.
        self._failing_since: dict[str, float] = {}
        self._stopped_polling = Event()
        self._thread = Thread(target=self._poll, name="publisher", daemon=True)

    def topic(self, name: str) -> TopicWriter:
        """Return a writer for one of the service's own topics (name without prefix)."""
        fence = self.fence if name in SAID_ONCE else None
        return TopicWriter(self, topic_name(self._settings, name), fence)

    async def on_start(self) -> None:
        """Start the thread that takes brokers' answers."""
        self._thread.start()

    async def on_stop(self) -> None:
        """Drop records in flight (senders that need them have waited), and stop the threads."""
        self.fence.stop()
        self._producer.purge()
        self._stopped_polling.set()
        await asyncio.to_thread(self._thread.join)

    async def flush(self) -> None:
        """Wait until brokers have acknowledged everything, for 2 s at most."""
        flushing = asyncio.to_thread(self._producer.flush, FLUSH_SECONDS)
        await asyncio.wait(
            [asyncio.ensure_future(each) for each in (flushing, self.fence.idle())],
            timeout=FLUSH_SECONDS,
        )

    async def send(
        self, topic: str, key: bytes, value: bytes | None, headers: Headers = None
    ) -> Acknowledged:
        """Send a record. The future raises KafkaException if brokers do not accept it."""
        loop = asyncio.get_running_loop()
        acknowledged = loop.create_future()
        acknowledged.add_done_callback(_retrieve_exception)

        def answered(error: KafkaError | None, message: Message) -> None:
            loop.call_soon_threadsafe(partial(self._answered, topic, acknowledged, error))

        while True:
            if not self._replacing and self._may_publish():
                try:
                    self._producer.produce(
                        topic,
                        value,
                        key,
                        on_delivery=answered,
                        headers=None if headers is None else dict(headers),
                    )
                except BufferError:
                    pass  # the brokers are slower than we are
                except KafkaException as error:  # for example, the topic is deleted
                    self._answered(topic, acknowledged, error.args[0])
                    return acknowledged
                else:
                    return acknowledged
            await asyncio.sleep(_PAUSE_SECONDS)

    def replace_client(self) -> None:
        """Replace each client once its records are acknowledged or given up.

        It is needed after a topic was recreated with another leader: librdkafka still sends to the
        old leader, since the new one's leader epoch is lower (confluentinc/librdkafka#4898).
        """
        self._replacing = True
        self.fence.replace_client()

    async def written(
        self, topic: str, sought: Container[Record], since_ms: int
    ) -> frozenset[Record]:
        """Return which of the sought records are on a topic, of those written since a time (ms).

        Waits until this instance may publish. Raises UserError when the topic cannot be read.
        """
        while True:
            if self._may_publish():
                return await asyncio.to_thread(self._written, topic, sought, since_ms)
            await asyncio.sleep(_PAUSE_SECONDS)

    def _written(self, topic: str, sought: Container[Record], since_ms: int) -> frozenset[Record]:
        records = read_topic(self._settings, topic, Progress(), since_ms)
        return frozenset(record for record in records if record in sought)

    def _answered(self, topic: str, acknowledged: Acknowledged, error: KafkaError | None) -> None:
        if error is not None and self._health.failed(PROBE):
            log.warning("writing to %s: %s", topic, error.str())
        if error is None:
            self._health.recovered(PROBE)
            self._failing_since.pop(topic, None)
            if any(time.monotonic() - at > _STUCK_SECONDS for at in self._failing_since.values()):
                log.warning(
                    "%s accept no records: reconnecting", ", ".join(sorted(self._failing_since))
                )
                self._failing_since.clear()
                self._replacing = True
        else:
            self._failing_since.setdefault(topic, time.monotonic())
        if acknowledged.done():
            return
        if error is None:
            acknowledged.set_result(None)
        else:
            acknowledged.set_exception(KafkaException(error))

    def _poll(self) -> None:
        until: float | None = None
        while not self._stopped_polling.is_set():
            self._producer.poll(_POLL_SECONDS)
            self._health.pulses.beat(PUBLISHER)
            if not self._replacing:
                continue
            until = until or time.monotonic() + _DRAINED_SECONDS
            if len(self._producer) == 0 or time.monotonic() > until:
                self._producer.purge()
                self._producer.flush(_POLL_SECONDS)
                self._producer = producer(self._settings, **_CONFIG)
                until, self._replacing = None, False
        self._health.pulses.rest(PUBLISHER)


class RecordSender(Protocol):
    """What writes to topics: a Publisher, or what takes its place."""

    async def send(
        self, topic: str, key: bytes, value: bytes | None, headers: Headers = None
    ) -> Acknowledged:
        """Send a record: see ``Publisher.send``."""
        ...

    async def written(
        self, topic: str, sought: Container[Record], since_ms: int
    ) -> frozenset[Record]:
        """Return which of the sought records are on a topic: see ``Publisher.written``."""
        ...


class TopicWriter:
    """Writes to one topic."""

    def __init__(self, publisher: RecordSender, name: str, fence: FencedWriter | None) -> None:
        self._publisher = publisher
        self._fence = fence
        self.name = name

    @property
    def fence(self) -> FencedWriter | None:
        """The writer for the topic's transactions; None if its records go without."""
        return None if self._fence is None or self._fence.refused else self._fence

    async def send(
        self, *, key: bytes, value: bytes | None, headers: Headers = None
    ) -> Acknowledged:
        """Send a record: see ``Publisher.send``. In a transaction of its own if it has to be."""
        if self.fence is None:
            return await self._publisher.send(self.name, key, value, headers)
        acknowledged = asyncio.get_running_loop().create_future()
        acknowledged.add_done_callback(_retrieve_exception)
        try:
            record = FencedRecord(self.name, key, value, headers)
            failure = (await self.fence.write([record]))[0]
        except KafkaException as error:
            failure = error
        if failure is None:
            acknowledged.set_result(None)
        else:
            acknowledged.set_exception(failure)
        return acknowledged

    async def written(self, sought: Container[Record], since_ms: int) -> frozenset[Record]:
        """Return which of the sought records are on the topic: see ``Publisher.written``."""
        return await self._publisher.written(self.name, sought, since_ms)


def _retrieve_exception(acknowledged: Acknowledged) -> None:
    """Retrieve a future's exception, so that asyncio logs none: failures are counted already."""
    if not acknowledged.cancelled():
        acknowledged.exception()
