"""A cluster's state read once, straight from Kafka: for commands that need no service."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Any

import msgspec
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from caughtup.agents.application_states import apply_record as apply_application_state
from caughtup.agents.catch_up_rates import apply_record as apply_rates
from caughtup.agents.clock import now_ms
from caughtup.agents.connection import bad_property, connect, unreachable
from caughtup.agents.end_offset_listing import list_end_offsets, topic_ids
from caughtup.agents.end_offsets import apply_record
from caughtup.agents.errors import UserError
from caughtup.agents.kafka_config import rdkafka_config
from caughtup.agents.progress import Progress
from caughtup.agents.readable_ends import ReadableEnds
from caughtup.agents.settings import Settings
from caughtup.agents.topics import (
    APPLICATION_STATES,
    CATCH_UP_RATES,
    CONSUMER_OFFSETS,
    END_OFFSETS,
    RECOMMENDATIONS,
    topic_name,
)
from caughtup.models.application import TELLING_MS
from caughtup.models.errors import CaughtupError
from caughtup.models.partition_movements import KIND as PARTITION_MOVEMENT
from caughtup.models.state import ClusterState
from caughtup.models.wire.batch import decode_batch

log = logging.getLogger(__name__)

_POLL_RECORDS = 10_000
_POLL_SECONDS = 1.0
_TIMEOUT_SECONDS = 10.0
_RETRY_SECONDS = 0.1
_LEADER_MOVES = (
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE,
)


def read_snapshot(settings: Settings, progress: Progress) -> ClusterState:
    """Read groups, commits and end offsets of the cluster as it is now.

    Raises UserError when the cluster can't be reached or read.
    """
    admin, cluster = connect(settings)
    state = ClusterState(cluster, settings.parameters())
    for key, value in read_if_allowed(settings, RECOMMENDATIONS, progress):
        take_published(state, key, value)
    for key, value in read_if_allowed(settings, APPLICATION_STATES, progress):
        apply_application_state(state, key, value, now_ms())
    for key, value in read_if_allowed(settings, CATCH_UP_RATES, progress):
        apply_rates(state, key, value)
    for key, value in read_if_allowed(settings, END_OFFSETS, progress):
        apply_record(state, key, value)
    batch: list[tuple[bytes | None, bytes | None]] = []
    for record in read_topic(settings, CONSUMER_OFFSETS, progress):
        batch.append(record)
        if len(batch) >= _POLL_RECORDS:
            state.apply_batch(decode_batch(batch), now_ms())
            batch.clear()
    state.apply_batch(decode_batch(batch), now_ms())
    found, _ = list_end_offsets(admin, state.wanted_topics())
    named = topic_ids(admin, state.unnamed_topics())
    readable = ReadableEnds(settings, state)
    readable.read(readable.suspects(found, at_once=True), found)
    for partition, ends in sorted(readable.complete(found).items()):
        state.apply_ends(partition, ends, named.get(partition.topic))
    # The service's looks are the past of what is seen now, and no more.
    for partition in [partition for partition, _ in state.ends if partition not in found]:
        state.apply_ends(partition, None)
    for group in state.group_names():
        for _ in state.assessments.assess(state, group, now_ms()):
            pass
    state.applications.leave_the_past()
    # Nobody tells a command more than there is: it waits for nothing.
    for _ in state.decide(now_ms() + TELLING_MS):
        pass  # a snapshot publishes nothing; what was decided is in the state
    for group in [*state.applications, *state.groups.streams]:
        for _ in state.watch_copies(group, now_ms()):
            pass
    return state


class _NotAllowedError(UserError):
    """The cluster doesn't let us read a topic."""


def read_if_allowed(
    settings: Settings, name: str, progress: Progress, since_ms: int | None = None
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Give the records of a topic of the service's; none if it is missing, or not for us to read.

    The service adds the past to what a command sees by itself, ``since_ms`` only what was written
    since then.
    """
    try:
        yield from read_topic(settings, topic_name(settings, name), progress, since_ms)
    except _NotAllowedError as error:
        log.debug("%s", error)


def take_published(state: ClusterState, key: bytes | None, value: bytes | None) -> None:
    """Take one record of caughtup-recommended-assignments; a malformed one is skipped."""
    if key is None or value is None:
        return
    try:
        record = msgspec.json.decode(value, type=dict[str, Any])
        state.applications.apply_published(key.decode(), record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        log.warning("skipped a recommendation, key %r: %s", key, error)


def take_movement(state: ClusterState, value: bytes | None) -> None:
    """Take one record of caughtup-movements; a malformed one is skipped."""
    if value is None:
        return
    try:
        event = msgspec.json.decode(value, type=dict[str, Any])
        if event.get("kind") == PARTITION_MOVEMENT:
            state.partition_movements.restore(event)
        else:
            state.applications.movements.restore(event)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, CaughtupError) as error:
        log.warning("skipped an event of a movement: %s", error)


def read_topic(
    settings: Settings, topic: str, progress: Progress, since_ms: int | None = None
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Give the records of a topic, up to its end as it is now; none if there is no such topic.

    read_committed. ``since_ms``: from the first record of that time on, not from the start.
    Raises UserError when it can't be read.
    """
    consumer = _consumer(settings)
    try:
        metadata = consumer.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic]
        if metadata.error is not None and metadata.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return
        if metadata.error is not None:
            raise _refused(topic, metadata.error)
        partitions = [TopicPartition(topic, p, OFFSET_BEGINNING) for p in metadata.partitions]
        starts, ends = _bounds(settings, partitions)
        if since_ms is not None:
            asked = [TopicPartition(topic, p, since_ms) for p in metadata.partitions]
            partitions = consumer.offsets_for_times(asked, timeout=_TIMEOUT_SECONDS)
            # Below 0: there is no such record.
            starts = {
                p.partition: p.offset if p.offset >= 0 else ends[p.partition] for p in partitions
            }
        consumer.assign(partitions)
        unfinished = {p for p in ends if starts[p] < ends[p]}
        # Compaction leaves fewer records than the offsets say.
        total = sum(ends.values()) - sum(starts.values())
        with progress.task(f"reading {topic}", total) as advance:
            while unfinished:
                messages = consumer.consume(_POLL_RECORDS, timeout=_POLL_SECONDS)
                advance(len(messages))
                for message in messages:
                    error = message.error()
                    if error is None:
                        yield message.key(), message.value()
                        # Waiting for the end of the partition instead would never end where
                        # commits keep coming: each fetch then brings another one.
                        if message.offset() + 1 >= ends[message.partition()]:
                            unfinished.discard(message.partition())
                    elif error.code() == KafkaError._PARTITION_EOF:
                        unfinished.discard(message.partition())
                    elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
                        raise _refused(topic, error)
    except KafkaException as error:
        reason = error.args[0]
        # Codes below 0 are librdkafka's own; the others are a broker's answer.
        if reason.code() < 0:
            raise unreachable(settings, reason) from None
        raise _refused(topic, reason) from None
    finally:
        consumer.close()


def _consumer(settings: Settings) -> Consumer:
    """Make a consumer that nothing is kept of: its group is only a name that it has to have."""
    config = rdkafka_config(
        settings,
        **{
            "group.id": f"{settings.application_id}-snapshot",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            # By default the fetching stops for a whole second whenever the queue is full.
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
    """List the start offsets and the last stable offsets of a topic's partitions, as now."""
    admin = AdminClient(rdkafka_config(settings))
    # One that has asked for nothing yet takes 3 s for offsets, one time in sixty.
    admin.list_topics(partitions[0].topic, timeout=_TIMEOUT_SECONDS)
    starts, ends = (
        _list(admin, partitions, spec) for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
    )
    return starts, ends


def _list(admin: AdminClient, partitions: list[TopicPartition], spec: OffsetSpec) -> dict[int, int]:
    """List offsets, again while a leader is on the move: a new topic's always is."""
    wanted = {TopicPartition(p.topic, p.partition): spec for p in partitions}
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while True:
        futures = admin.list_offsets(
            wanted,
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=_TIMEOUT_SECONDS,
        )
        try:
            return {p.partition: future.result().offset for p, future in futures.items()}
        except KafkaException as error:
            if error.args[0].code() not in _LEADER_MOVES or time.monotonic() > deadline:
                raise
            time.sleep(_RETRY_SECONDS)
