"""Read a topic from its start to its present end: for commands, and at the start of the service."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator

from confluent_kafka import KafkaError, KafkaException

from caughtup.agents.clock import now_ms
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.first_contact import bad_property, unreachable
from caughtup.agents.progress import Progress
from caughtup.agents.settings import Settings
from caughtup.agents.topics.consumer import ConsumerRecord, StandaloneConsumer
from caughtup.agents.topics.definitions import topic_name
from caughtup.models.records.decoding import BAD_COMPRESSION
from caughtup.models.records.topics import SAID_ONCE
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

Records = Iterator[tuple[bytes | None, bytes | None]]
Accepts = Callable[[ConsumerRecord], bool]

_POLL_SECONDS = 1.0
_RETRY_SECONDS = 0.1
#: How long a first connection may take, and the election of a new topic's leader.
_OPEN_SECONDS = 10.0
#: Without any record or end for this long, the cluster counts as unreachable.
_PATIENCE_SECONDS = 30.0
#: Passing errors: a partition changes its leader, or a connection is not open yet.
_PASSING = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
)


class _NotAllowedError(UserError):
    """We are not allowed to read a topic, or a broker refuses it for another reason."""


def read_if_allowed(
    settings: Settings, name: str, progress: Progress, since_ms: int | None = None
) -> Records:
    """Yield the records of one of the service's topics; none if it is missing or not allowed, or not used.

    For commands: the service's records add the past to what a command sees by itself.
    ``since_ms``: only records written since that time.
    """
    if not settings.own_topics:
        return
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
    accepts: Accepts | None = None,
) -> Records:
    """Yield the records of one of the service's topics; none if it has no topics.

    Batches that cannot be decompressed count as refused. Only records for which ``accepts`` returns
    True are yielded; it gets records with their headers. Raises UserError when the topic cannot be
    read.
    """
    if not settings.own_topics:
        return

    def refuse(offset: int, why: str) -> None:
        state.refused.refuse(name, None, BAD_COMPRESSION, f"offset {offset}: {why}", now_ms())

    topic = topic_name(settings, name)
    yield from read_topic(settings, topic, progress, unreadable=refuse, accepts=accepts)


def read_topic(
    settings: Settings,
    topic: str,
    progress: Progress,
    since_ms: int | None = None,
    unreadable: Callable[[int, str], None] = lambda offset, why: None,
    accepts: Accepts | None = None,
) -> Records:
    """Yield a topic's records (key, value) up to its present end.

    Of what is written in transactions, only committed records are yielded, and the end is the last
    stable offset. A topic that does not exist has no records. ``since_ms``: start at the first record of that
    time. ``unreadable`` is called with the offset of a batch that cannot be decompressed, and why;
    the batch is skipped. ``accepts`` decides which records to yield, and gets them with their
    headers; None: all. Raises UserError when the topic cannot be read.
    """
    try:
        committed = topic.removeprefix(settings.topic_prefix) in SAID_ONCE
        consumer = StandaloneConsumer(settings, headers=accepts is not None, committed=committed)
    except (KafkaException, TypeError, ValueError) as error:
        raise bad_property(error) from None
    try:
        _open(settings, consumer, topic, since_ms)
        silent_until = time.monotonic() + _PATIENCE_SECONDS
        with progress.task(f"reading {topic}", consumer.unread_offsets()) as advance:
            while consumer.unread:
                unread = len(consumer.unread)
                poll = consumer.poll(_POLL_SECONDS)
                records = poll.records.get(topic, ())
                advance(len(records))
                for record in records:
                    if accepts is None or accepts(record):
                        yield record.key, record.value
                for _, offset, why in poll.unreadable:
                    unreadable(offset, why)
                if poll.errors:
                    raise _failed(settings, topic, poll.errors[0])
                if records or poll.unreadable or len(consumer.unread) < unread:
                    silent_until = time.monotonic() + _PATIENCE_SECONDS
                elif time.monotonic() > silent_until:
                    raise unreachable(settings, None)
    except KafkaException as error:
        raise _failed(settings, topic, error.args[0]) from None
    finally:
        consumer.close()


def _open(
    settings: Settings, consumer: StandaloneConsumer, topic: str, since_ms: int | None
) -> None:
    """Open a topic unless it does not exist; retry passing errors, such as a change of leader, for 10 s."""
    deadline = time.monotonic() + _OPEN_SECONDS
    while failed := consumer.open({topic: False}, since_ms):
        code = failed[topic].code()
        if code == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return
        if code not in _PASSING or time.monotonic() > deadline:
            raise _failed(settings, topic, failed[topic])
        time.sleep(_RETRY_SECONDS)


def _failed(settings: Settings, topic: str, error: KafkaError) -> UserError:
    """Return why a topic cannot be read. Codes below 0 are errors of librdkafka, not of a broker."""
    if error.code() < 0:
        return unreachable(settings, error)
    advice = ""
    if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        advice = ": allow READ on the topic; `caughtup check` names all that is missing"
    return _NotAllowedError(f"cannot read {topic} ({error.str()}){advice}")
