"""``__consumer_offsets`` as a log to be read from its start and then on: what a thread does.

librdkafka fetches and decompresses on threads of its own; what is left for Python is to take
whole slices of messages and to decode them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

from confluent_kafka import (
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from caughtup.agents.kafka.broker_answers import BrokerAnswers
from caughtup.agents.kafka.clients import consumer
from caughtup.agents.settings import Settings
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS

#: How the topic is read, here and by the benchmark.
CONSUMER: dict[str, Any] = {
    "isolation.level": "read_committed",
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    # position() moves over transaction markers at a partition's end only with these events.
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 200,
    # Large runs of one partition's records, since most of them are commits of the same keys; and
    # few of them, since a message in librdkafka's queue weighs several times its bytes.
    "fetch.message.max.bytes": 4 << 20,
    "queued.max.messages.kbytes": 16 << 10,
    # By default the fetching stops for a whole second whenever the queue is full.
    "fetch.queue.backoff.ms": 1,
    # As fresh after an outage as it can be.
    "reconnect.backoff.max.ms": 1_000,
}
#: Messages taken at once: so few that they are still in the processor's cache when they are read,
#: and are dropped, which is a third faster than with all of a poll's.
SLICE_MESSAGES = 2_000
#: Of a poll while what is left of the log's past is read.
POLL_RECORDS = 20_000
#: Of a poll afterwards. It is applied in one go, which holds up the event loop for some 10 ms.
LIVE_RECORDS = 2_000
_TIMEOUT_SECONDS = 10.0
#: More objects than are new at once while a log is read: messages are dropped slice by slice.
_OBJECTS = 1_000_000


@contextmanager
def few_collections() -> Iterator[None]:
    """Allow slices of messages to come and go with hardly a search for garbage cycles meanwhile.

    Usually Python searches after every 700 new objects, a few times a slice, and finds none.
    """
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


class Poll(NamedTuple):
    """Records by column, in the order of their partitions; and errors, after which it goes on."""

    keys: list[bytes | None]
    values: list[bytes | None]
    errors: list[KafkaError]


class OffsetLog:
    """A consumer of all of ``__consumer_offsets``, read_committed, without a group.

    Every call blocks and none is safe beside another: meant for one thread. ``start_offsets`` and
    ``ends_at_start`` are by partition, the latter the last stable offsets when it was opened:
    nothing beyond them could be read then. Calls raise KafkaException.
    """

    def __init__(self, settings: Settings) -> None:
        self._answers = BrokerAnswers(CONSUMER_OFFSETS)
        # The group is only a name that a consumer has to have: nothing is kept of it.
        config = {**CONSUMER, **self._answers.config, "group.id": settings.application_id}
        self._consumer = consumer(settings, **config)
        self._ended: dict[int | None, int | None] = {}
        self._from: dict[int, int] = {}
        self.start_offsets: dict[int, int] = {}
        self.ends_at_start: dict[int, int] = {}

    def open(self) -> Self | None:
        """Learn where the partitions start and end; None while there is no such topic.

        Brokers make it when the first group needs it.
        """
        topic = self._consumer.list_topics(CONSUMER_OFFSETS, timeout=_TIMEOUT_SECONDS).topics[
            CONSUMER_OFFSETS
        ]
        if topic.error is not None:
            if topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise KafkaException(topic.error)
        for number in sorted(topic.partitions):
            partition = TopicPartition(CONSUMER_OFFSETS, number)
            # Under read_committed the upper one is the last stable offset.
            start, end = self._consumer.get_watermark_offsets(partition, _TIMEOUT_SECONDS)
            self.start_offsets[number], self.ends_at_start[number] = start, end
        return self

    def start(self, positions: Mapping[int, int] | None = None) -> None:
        """Start to read all partitions from these offsets on, or from their start."""
        self._from = dict(positions or self.start_offsets)
        self._consumer.assign(
            [TopicPartition(CONSUMER_OFFSETS, number, at) for number, at in self._from.items()]
        )

    def poll(self, seconds: float, most: int = POLL_RECORDS) -> Poll:
        """Wait so long for a first message, then return what is there, up to about so many."""
        poll = Poll([], [], [])
        messages = self._consumer.consume(1, seconds)
        while messages:
            if any(map(Message.error, messages)):
                messages = self._take_errors(messages, poll.errors)
            poll.keys.extend(map(Message.key, messages))
            poll.values.extend(map(Message.value, messages))
            if len(poll.keys) >= most:
                break
            messages = self._consumer.consume(SLICE_MESSAGES, 0)
        return poll

    def _take_errors(self, messages: Sequence[Message], errors: list[KafkaError]) -> list[Message]:
        """Return the messages that are records; the ends of partitions are noted."""
        records = []
        for message in messages:
            error = message.error()
            if error is None:
                records.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ended[message.partition()] = message.offset()
            else:
                errors.append(error)
        return records

    def left_of_start(self) -> int:
        """Count the offsets that were there when it was opened and aren't read yet."""
        return sum(
            max(0, self.ends_at_start[partition] - position)
            for partition, position in self._positions().items()
        )

    def behind(self) -> int:
        """Count the offsets yet to be read, as far as brokers have told of them.

        An open transaction ends what can be read: there is nothing to read beyond it.
        """
        behind = 0
        for partition, position in self._positions().items():
            if self._ended.get(partition) != position:
                known = TopicPartition(CONSUMER_OFFSETS, partition)
                _, end = self._consumer.get_watermark_offsets(known, cached=True)
                behind += max(0, max(end, self.ends_at_start[partition]) - position)
        return behind

    def answered_ms(self) -> int | None:
        """Return when the brokers last answered, for each partition; None while one has no answer."""
        return self._answers.at_ms

    def _positions(self) -> dict[int, int]:
        """Return the offset to be read next, by partition."""
        asked = [TopicPartition(CONSUMER_OFFSETS, partition) for partition in self._from]
        found = zip(self._from.items(), self._consumer.position(asked), strict=True)
        # Before a partition's first record it is a negative number with a meaning of its own.
        return {partition: max(start, at.offset) for (partition, start), at in found}

    def close(self) -> None:
        """Leave the cluster; nothing of it is left there."""
        self._consumer.close()
