"""The service's own topics as logs to be read from their start and then on: what a thread does."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import ListOffsetsResultInfo, OffsetSpec

from caughtup.agents.kafka.admin_results import result_of
from caughtup.agents.kafka.clients import admin_client, consumer
from caughtup.agents.settings import Settings
from caughtup.agents.topics.unreadable_batches import Skipping

log = logging.getLogger(__name__)

_CONSUMER: dict[str, Any] = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 200,
    "queued.max.messages.kbytes": 16 << 10,
    # By default the fetching stops for a whole second whenever the queue is full.
    "fetch.queue.backoff.ms": 1,
    "reconnect.backoff.max.ms": 1_000,
}
_POLL_RECORDS = 5_000
#: For so long a partition may give nothing, not even its end; and while brokers are away.
_LEAST_PATIENCE_SECONDS, _MOST_PATIENCE_SECONDS = 5.0, 60.0
_TIMEOUT_SECONDS = 3.0


class ConsumerRecord(NamedTuple):
    """A record. ``at_ms``: when it was written, by the broker's clock where ``by_broker``.

    ``offset`` is -1 where nobody asked for it.
    """

    key: bytes | None
    value: bytes | None
    at_ms: int
    by_broker: bool = True
    offset: int = -1


class Unreadable(NamedTuple):
    """A batch that can't be decompressed: its topic, its first offset, and why."""

    topic: str
    offset: int
    why: str


class Poll(NamedTuple):
    """Records by topic, each in its order; what was passed over; errors, after which it goes on.

    ``refused`` has the errors of those topics that a broker doesn't let us read.
    """

    records: dict[str, list[ConsumerRecord]]
    errors: list[KafkaError]
    unreadable: list[Unreadable]
    refused: dict[str, KafkaError]


class StandaloneConsumer:
    """A consumer of several topics, read_committed, without a group.

    Every call blocks and none is safe beside another: meant for one thread. Calls raise
    KafkaException. ``unread`` are the partitions whose end, as it was when they were opened, has
    not been reached.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._consumer = self._connect()
        self._admin = admin_client(settings)
        #: Where each partition is to be read next.
        self._next: dict[tuple[str, int], int] = {}
        self._ends: dict[tuple[str, int], int] = {}
        self._held: set[str] = set()
        self._skipping = Skipping()
        #: Partitions of which nothing came yet, not even their end, and for how long that may be.
        self._silent: set[tuple[str, int]] = set()
        self._patience = _LEAST_PATIENCE_SECONDS
        self._silent_until = 0.0
        self.unread: set[tuple[str, int]] = set()

    def _connect(self) -> Consumer:
        # The group is only a name that a consumer has to have: nothing is kept of it.
        return consumer(self._settings, **_CONSUMER, **{"group.id": self._settings.application_id})

    def open(self, topics: Mapping[str, bool]) -> dict[str, KafkaError]:
        """Read topics from their start, or from their end where True; again if they were read.

        Returns what failed, by topic: one that a broker hasn't heard of failed, too, since the
        service made it and the news may be on its way.
        """
        failed: dict[str, KafkaError] = {}
        for topic, at_end in sorted(topics.items()):
            try:
                starts, ends = self._bounds(topic)
            except KafkaException as error:
                failed[topic] = error.args[0]
                continue
            self._forget(topic)
            for number, end in ends.items():
                key = topic, number
                self._next[key] = end if at_end else OFFSET_BEGINNING
                self._ends[key] = end
                if not at_end and starts[number] < end:
                    self.unread.add(key)
        if len(failed) < len(topics):
            self._patience = _LEAST_PATIENCE_SECONDS
            self._assign()
        return failed

    def _assign(self) -> None:
        self._consumer.assign([TopicPartition(*key, at) for key, at in sorted(self._next.items())])
        self._held.clear()
        self._silent = set(self._next)
        self._silent_until = self._clock() + self._patience

    def _renew(self) -> None:
        """Read on with another client, where this one gives nothing of a partition, not even its end.

        librdkafka may read nothing more, without a word, of a topic that was deleted and made anew.
        """
        log.info("no answers on %s: connecting anew", sorted(self._silent))
        self._consumer.close()
        self._consumer = self._connect()
        self._patience = min(2 * self._patience, _MOST_PATIENCE_SECONDS)
        self._assign()

    def _bounds(self, topic: str) -> tuple[dict[int, int], dict[int, int]]:
        """List a topic's start offsets and last stable offsets."""
        known = self._admin.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic]
        if known.error is not None:
            raise KafkaException(known.error)
        # The consumer's own way to ask takes it half a second once it reads something.
        partitions = [TopicPartition(topic, number) for number in known.partitions]
        starts, ends = (
            self._admin.list_offsets(
                dict.fromkeys(partitions, spec),
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=_TIMEOUT_SECONDS,
            )
            for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
        )
        return _offsets(starts), _offsets(ends)

    def partition_counts(self) -> dict[str, int]:
        """Return every topic that there is, and how many partitions it has."""
        known = self._admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
        return {name: len(topic.partitions) for name, topic in known.items()}

    def poll(self, seconds: float) -> Poll:
        """Wait so long for a first message, then take what is there."""
        poll = Poll({}, [], [], {})
        messages = self._consumer.consume(1, seconds)
        if messages:
            messages += self._consumer.consume(_POLL_RECORDS, 0)
        for message in messages:
            self._take(message, poll)
        if self._clock() > self._silent_until and any(
            topic not in self._held for topic, _ in self._silent
        ):
            self._renew()
        return poll

    def _take(self, message: Message, poll: Poll) -> None:
        error, topic, number = message.error(), message.topic(), message.partition()
        if topic is None or number is None or (topic, number) not in self._next:
            return
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            self._silent.discard((topic, number))
        if error is None:
            self._skipping.read(message)
            kind, at_ms = message.timestamp()
            by_broker = kind == TIMESTAMP_LOG_APPEND_TIME
            offset = message.offset() or 0
            record = ConsumerRecord(message.key(), message.value(), at_ms, by_broker, offset)
            poll.records.setdefault(topic, []).append(record)
            at = self._next[topic, number] = offset + 1
            if at >= self._ends[topic, number]:
                self.unread.discard((topic, number))
        elif error.code() == KafkaError._PARTITION_EOF:
            self.unread.discard((topic, number))
        elif error.code() == KafkaError._BAD_COMPRESSION:
            place = self._skipping.behind(message, self._log_end(topic, number))
            if place is not None:
                poll.unreadable.append(Unreadable(topic, message.offset() or 0, error.str()))
                self._consumer.seek(place)
        else:
            poll.errors.append(error)
            if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                poll.refused[topic] = error

    def _log_end(self, topic: str, number: int) -> int:
        """Return where a partition's log ends, as the brokers last answered."""
        partition = TopicPartition(topic, number)
        _, end = self._consumer.get_watermark_offsets(partition, timeout=_TIMEOUT_SECONDS)
        return end

    def hold(self, topics: Collection[str]) -> None:
        """Read nothing of these topics until they are no longer among them."""
        wanted = set(topics)
        for change, those in (
            (self._consumer.pause, wanted - self._held),
            (self._consumer.resume, self._held - wanted),
        ):
            partitions = [TopicPartition(*key) for key in self._next if key[0] in those]
            if partitions:
                change(partitions)
        self._held = wanted

    def _forget(self, topic: str) -> None:
        for known in (self._next, self._ends):
            for key in [key for key in known if key[0] == topic]:
                del known[key]
        self.unread = {key for key in self.unread if key[0] != topic}
        self._silent = {key for key in self._silent if key[0] != topic}

    def close(self) -> None:
        """Leave the cluster; nothing of it is left there."""
        self._consumer.close()


def _offsets(asked: Mapping[TopicPartition, Future[ListOffsetsResultInfo]]) -> dict[int, int]:
    return {partition.partition: result_of(future).offset for partition, future in asked.items()}
