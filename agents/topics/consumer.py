"""A consumer without a group that reads topics from their start and follows them, for a thread.

It reads own topics and those of Connect, for the service and for commands.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import NamedTuple

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

from caughtup.agents.kafka.clients import admin_client, consumer, result_of
from caughtup.agents.settings import Settings

log = logging.getLogger(__name__)

_CONSUMER: dict[str, object] = {
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 200,
    "queued.max.messages.kbytes": 16 << 10,
    # By default fetching pauses for a second whenever the queue is full.
    "fetch.queue.backoff.ms": 1,
    "reconnect.backoff.max.ms": 1_000,
}
_POLL_RECORDS = 5_000
#: How long a partition may deliver nothing, not even its end; doubled while brokers are away.
_LEAST_PATIENCE_SECONDS, _MOST_PATIENCE_SECONDS = 5.0, 60.0
_TIMEOUT_SECONDS = 3.0


class ConsumerRecord(NamedTuple):
    """A record. ``at_ms``: its timestamp, set by the broker if ``by_broker``, else by the producer.

    ``offset`` is -1 where it is not needed; there are no ``headers`` unless they were asked for.
    """

    key: bytes | None
    value: bytes | None
    at_ms: int
    by_broker: bool = True
    offset: int = -1
    headers: Mapping[str, str | bytes | None] = MappingProxyType({})


class Unreadable(NamedTuple):
    """A batch that cannot be decompressed: its topic, its first offset, and why."""

    topic: str
    offset: int
    why: str


class Poll(NamedTuple):
    """The result of a poll: records by topic in their order, errors, and skipped batches.

    Reading continues after errors. ``refused``: the errors of topics that we may not read.
    """

    records: dict[str, list[ConsumerRecord]]
    errors: list[KafkaError]
    unreadable: list[Unreadable]
    refused: dict[str, KafkaError]


class StandaloneConsumer:
    """A consumer of several topics, without a group.

    For one thread: every call blocks, and calls are not thread-safe. Calls raise KafkaException.
    ``headers``: whether records have their headers. ``committed``: read only committed records, so
    that an open transaction holds back all that follows. Only Connect's topics and those that the
    service writes in transactions are read so: on others a stranger's transaction must not hold
    back what the service reads. ``unread``: the partitions of which something from before they were
    opened is unread.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
        *,
        headers: bool = False,
        committed: bool = False,
    ) -> None:
        self._settings = settings
        self._headers = headers
        self._committed = committed
        self._clock = clock
        self._consumer = self._connect()
        self._admin = admin_client(settings)
        #: The next offset to read of each partition.
        self._next: dict[tuple[str, int], int] = {}
        self._starts: dict[tuple[str, int], int] = {}
        self._ends: dict[tuple[str, int], int] = {}
        self._held: set[str] = set()
        self._skipper = _BatchSkipper()
        #: Partitions that have delivered nothing yet, not even their end, and how long they may.
        self._silent: set[tuple[str, int]] = set()
        self._patience = _LEAST_PATIENCE_SECONDS
        self._silent_until = 0.0
        self.unread: set[tuple[str, int]] = set()

    def _connect(self) -> Consumer:
        # librdkafka requires a group id; nothing is committed.
        isolation = "read_committed" if self._committed else "read_uncommitted"
        own = {"group.id": self._settings.application_id, "isolation.level": isolation}
        return consumer(self._settings, **_CONSUMER, **own)

    def open(
        self, topics: Mapping[str, bool], since_ms: int | None = None
    ) -> dict[str, KafkaError]:
        """Start (or restart) reading topics from their start, or from their end if True.

        ``since_ms``: start at the first record that was written at that time or later. Returns the
        errors by topic. A topic that the broker does not know is an error too: it may be new.
        """
        failed: dict[str, KafkaError] = {}
        for topic, at_end in sorted(topics.items()):
            try:
                starts, ends = self._bounds(topic, since_ms)
            except KafkaException as error:
                failed[topic] = error.args[0]
                continue
            self._forget(topic)
            for number, end in ends.items():
                key = topic, number
                self._starts[key] = starts[number]
                # The log start may move before it is read.
                beginning = OFFSET_BEGINNING if since_ms is None else starts[number]
                self._next[key] = end if at_end else beginning
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
        """Continue with a new client, since a partition delivers nothing, not even its end.

        librdkafka may silently stop reading a topic that was deleted and recreated.
        """
        log.info("no answers on %s: reconnecting", sorted(self._silent))
        self._consumer.close()
        self._consumer = self._connect()
        self._patience = min(2 * self._patience, _MOST_PATIENCE_SECONDS)
        self._assign()

    def _bounds(self, topic: str, since_ms: int | None) -> tuple[dict[int, int], dict[int, int]]:
        """Return the offsets to start at and to read to of a topic, by partition."""
        # A consumer that asks for a topic does not create it; an admin client may.
        known = self._consumer.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic]
        if known.error is not None:
            raise KafkaException(known.error)
        partitions = [TopicPartition(topic, number) for number in known.partitions]
        # By the consumer, the next request takes half a second while it reads. As a client's first
        # request, it takes 3 s one time in sixty; hence the request before it.
        self._admin.list_topics(topic, timeout=_TIMEOUT_SECONDS)
        start = OffsetSpec.earliest() if since_ms is None else OffsetSpec.for_timestamp(since_ms)
        asked = [
            self._admin.list_offsets(
                dict.fromkeys(partitions, spec),
                isolation_level=IsolationLevel.READ_COMMITTED
                if self._committed
                else IsolationLevel.READ_UNCOMMITTED,
                request_timeout=_TIMEOUT_SECONDS,
            )
            for spec in (start, OffsetSpec.latest())
        ]
        starts, ends = map(_offsets, asked)
        # The offset is below 0 if there is no record since then.
        return {number: at if at >= 0 else ends[number] for number, at in starts.items()}, ends

    def unread_offsets(self) -> int:
        """Return how many offsets are unread: an upper bound of the records, which may be compacted."""
        return sum(self._ends[key] - max(self._starts[key], self._next[key]) for key in self.unread)

    def partition_counts(self) -> dict[str, int]:
        """Return the number of partitions of every topic."""
        known = self._admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
        return {name: len(topic.partitions) for name, topic in known.items()}

    def poll(self, seconds: float) -> Poll:
        """Wait up to ``seconds`` for a first record, then return all that have arrived."""
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
            self._skipper.read(message)
            kind, at_ms = message.timestamp()
            by_broker = kind == TIMESTAMP_LOG_APPEND_TIME
            offset = message.offset() or 0
            record = ConsumerRecord(message.key(), message.value(), at_ms, by_broker, offset)
            if self._headers:
                record = record._replace(headers=dict(message.headers() or ()))
            poll.records.setdefault(topic, []).append(record)
            at = self._next[topic, number] = offset + 1
            if at >= self._ends[topic, number]:
                self.unread.discard((topic, number))
        elif error.code() == KafkaError._PARTITION_EOF:
            self.unread.discard((topic, number))
        elif error.code() == KafkaError._BAD_COMPRESSION:
            place = self._skipper.next_offset(message, self._log_end(topic, number))
            if place is not None:
                poll.unreadable.append(Unreadable(topic, message.offset() or 0, error.str()))
                self._consumer.seek(place)
        else:
            poll.errors.append(error)
            if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                poll.refused[topic] = error

    def _log_end(self, topic: str, number: int) -> int:
        """Return the log end of a partition. Blocks for up to 3 s."""
        partition = TopicPartition(topic, number)
        _, end = self._consumer.get_watermark_offsets(partition, timeout=_TIMEOUT_SECONDS)
        return end

    def hold(self, topics: Collection[str]) -> None:
        """Pause exactly these topics, and resume all others."""
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
        for known in (self._next, self._starts, self._ends):
            for key in [key for key in known if key[0] == topic]:
                del known[key]
        self.unread = {key for key in self.unread if key[0] != topic}
        self._silent = {key for key in self._silent if key[0] != topic}

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def _offsets(asked: Mapping[TopicPartition, Future[ListOffsetsResultInfo]]) -> dict[int, int]:
    return {partition.partition: result_of(future).offset for partition, future in asked.items()}


class _BatchSkipper:
    """Finds the next readable offset after batches that cannot be decompressed.

    librdkafka decompresses zstd up to ``receive.message.max.bytes``. For a larger batch it reports
    ``_BAD_COMPRESSION``, and fetches the same batch for ever. The number of its records is unknown.
    Each attempt skips twice as many offsets as the one before, until a record can be read. So it
    loses fewer records after the batch than the batch had.
    """

    def __init__(self) -> None:
        #: By topic and partition: the offset to continue at, and the step if that fails too.
        self._tries: dict[tuple[str | None, int | None], tuple[int, int]] = {}

    def read(self, message: Message) -> None:
        """Record that a record could be read: unreadable batches before it are done."""
        if self._tries:
            self._tries.pop((message.topic(), message.partition()), None)

    def next_offset(self, message: Message, end: int) -> TopicPartition | None:
        """Return where to continue after the error in ``message``, up to the log end ``end``.

        Returns None for a late error of a batch that was skipped already.
        """
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        wanted, step = self._tries.get((topic, partition), (0, 1))
        if offset < wanted:
            return None
        self._tries[topic, partition] = (offset + step, 2 * step)
        return TopicPartition(topic, partition, min(offset + step, end))
