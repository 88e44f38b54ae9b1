"""Read a topic from its start to its present end: for commands, and at the start of the service."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.clients import result_of
from caughtup.agents.kafka.config import rdkafka_config
from caughtup.agents.kafka.first_contact import bad_property, unreachable
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.definitions import topic_name
from caughtup.agents.topics.standalone_consumer import BatchSkipper
from caughtup.models.records.decoding import BAD_COMPRESSION
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

Records = Iterator[tuple[bytes | None, bytes | None]]

_POLL_RECORDS = 10_000
_POLL_SECONDS = 1.0
_TIMEOUT_SECONDS = 10.0
_RETRY_SECONDS = 0.1
_LEADER_MOVES = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE,
)


class _NotAllowedError(UserError):
    """We are not allowed to read a topic, or a broker refuses it for another reason."""


def read_if_allowed(
    settings: Settings, name: str, progress: Progress, since_ms: int | None = None
) -> Records:
    """Yield the records of one of the service's topics; none if it is missing or not allowed.

    For commands: the service's records add the past to what a command sees by itself.
    ``since_ms``: only records written since that time.
    """
    topic = topic_name(settings, name)

    def skip(offset: int, why: str) -> None:
        log.warning("skipped records of %s from offset %d on: %s", topic, offset, why)

    try:
        yield from read_topic(settings, topic, progress, since_ms, skip)
    except _NotAllowedError as error:
        log.debug("%s", error)


def read_service_topic(
    settings: Settings,
    state: ClusterState,
    name: str,
    progress: Progress,
    accepts: Callable[[Message], bool] | None = None,
) -> Records:
    """Yield the records of one of the service's topics.

    Batches that cannot be decompressed count as refused. Only records for which ``accepts`` returns
    True are yielded. Raises UserError when the topic cannot be read.
    """

    def refuse(offset: int, why: str) -> None:
        state.refused.refuse(name, None, BAD_COMPRESSION, f"offset {offset}: {why}", now_ms())

    topic = topic_name(settings, name)
    yield from read_topic(settings, topic, progress, unreadable=refuse, accepts=accepts)


def read_topic(
    settings: Settings,
    topic: str,
    progress: Progress,
    since_ms: int | None = None,
    unreadable: Callable[[int, str], None] | None = None,
    accepts: Callable[[Message], bool] | None = None,
) -> Records:
    """Yield a topic's records (key, value) up to its present end, read_committed.

    A topic that does not exist has no records. ``since_ms``: start at the first record of that
    time. ``unreadable`` is called with the offset of a batch that cannot be decompressed, and why;
    the batch is skipped. ``accepts`` decides which records to yield; None: all. Raises UserError
    when the topic cannot be read.
    """
    consumer = _consumer(settings)
    skipper = BatchSkipper()
    try:
        metadata = consumer.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic]
        if metadata.error is not None and metadata.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return
        if metadata.error is not None:
            raise _refused(topic, metadata.error)
        partitions = [TopicPartition(topic, p, OFFSET_BEGINNING) for p in metadata.partitions]
        starts, ends = _bounds(settings, partitions)
        if since_ms is not None:
            wanted = [TopicPartition(topic, p, since_ms) for p in metadata.partitions]
            partitions = consumer.offsets_for_times(wanted, timeout=_TIMEOUT_SECONDS)
            # An offset below 0 means that there is no record since then.
            starts = {
                p.partition: p.offset if p.offset >= 0 else ends[p.partition] for p in partitions
            }
        consumer.assign(partitions)
        unfinished = {p for p in ends if starts[p] < ends[p]}
        # Only an upper bound: compaction removes records.
        total = sum(ends.values()) - sum(starts.values())
        with progress.task(f"reading {topic}", total) as advance:
            while unfinished:
                messages = consumer.consume(_POLL_RECORDS, timeout=_POLL_SECONDS)
                advance(len(messages))
                for message in messages:
                    error = message.error()
                    # An error without a record has neither offset nor partition.
                    offset, number = message.offset() or 0, message.partition() or 0
                    if error is None:
                        skipper.read(message)
                        if accepts is None or accepts(message):
                            yield message.key(), message.value()
                        # Waiting for PARTITION_EOF instead would never end while records keep
                        # coming: each fetch brings another one.
                        if offset + 1 >= ends[number]:
                            unfinished.discard(number)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        unfinished.discard(number)
                    elif error.code() == KafkaError._BAD_COMPRESSION and unreadable is not None:
                        place = skipper.next_offset(message, ends[number])
                        if place is not None:
                            unreadable(offset, error.str())
                            consumer.seek(place)
                    elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                        raise _refused(topic, error)
    except KafkaException as error:
        reason = error.args[0]
        # Codes below 0 are errors of librdkafka, the others of a broker.
        if reason.code() < 0:
            raise unreachable(settings, reason) from None
        raise _refused(topic, reason) from None
    finally:
        consumer.close()


def _consumer(settings: Settings) -> Consumer:
    """Make a consumer that commits nothing; librdkafka requires a group id."""
    config = rdkafka_config(
        settings,
        **{
            "group.id": f"{settings.application_id}-snapshot",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            # By default fetching pauses for a second whenever the queue is full.
            "fetch.queue.backoff.ms": 1,
            "auto.offset.reset": "earliest",
        },
    )
    try:
        return Consumer(config)
    except (KafkaException, TypeError, ValueError) as error:
        raise bad_property(error) from None


def _refused(topic: str, error: KafkaError) -> _NotAllowedError:
    advice = ""
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        advice = ": allow READ on the topic; `caughtup check` names all that is missing"
    return _NotAllowedError(f"cannot read {topic} ({error.str()}){advice}")


def _bounds(
    settings: Settings, partitions: list[TopicPartition]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return the start offsets and the last stable offsets of a topic's partitions."""
    admin = AdminClient(rdkafka_config(settings))
    # A client whose first request is for offsets takes 3 s, one time in sixty.
    admin.list_topics(partitions[0].topic, timeout=_TIMEOUT_SECONDS)
    starts, ends = (
        _list(admin, partitions, spec) for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
    )
    return starts, ends


def _list(admin: AdminClient, partitions: list[TopicPartition], spec: OffsetSpec) -> dict[int, int]:
    """Return offsets by partition; retry while a leader moves, as that of a new topic does."""
    wanted = {TopicPartition(p.topic, p.partition): spec for p in partitions}
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        futures = admin.list_offsets(
            wanted,
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=_TIMEOUT_SECONDS,
        )
        try:
            return {p.partition: result_of(future).offset for p, future in futures.items()}
        except KafkaException as error:
            if error.args[0].code() not in _LEADER_MOVES or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
