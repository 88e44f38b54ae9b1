"""Start, last stable and log end offsets of partitions, asked of their leaders."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka import IsolationLevel, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientTopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from caughtup.agents.clock import now_ms
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 10.0


class EndOffsetListing(NamedTuple):
    """The end offsets that leaders answered with, and every partition that was asked for.

    ``as_of_ms``: when the first was asked; answers may be as old. ``unanswered``: partitions that
    have a leader which didn't answer; what was known of them grows old. One without a leader has
    no offsets for now, and nobody writes to it.
    """

    as_of_ms: int
    found: dict[TopicPartition, EndOffsets]
    present: set[TopicPartition]
    unanswered: set[TopicPartition]


def list_end_offsets(admin: AdminClient, wants: Callable[[str], bool]) -> EndOffsetListing:
    """List start, last stable and log end offsets of every topic that ``wants(topic)`` names.

    Blocks. Raises KafkaException when the cluster can't be reached.
    """
    metadata = admin.list_topics(timeout=_TIMEOUT_SECONDS)
    partitions = [
        ClientTopicPartition(name, partition)
        for name, topic in metadata.topics.items()
        if wants(name)
        for partition in topic.partitions
    ]
    as_of = now_ms()
    starts = _list(admin, partitions, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)
    stable = _list(admin, partitions, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
    ends = _list(admin, partitions, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)
    found = {
        partition: EndOffsets(starts[partition], stable[partition], ends[partition], as_of)
        for partition in ends
        if partition in starts and partition in stable
    }
    present = {TopicPartition(p.topic, p.partition) for p in partitions}
    led = {p for p in present if metadata.topics[p.topic].partitions[p.partition].leader >= 0}
    return EndOffsetListing(as_of, found, present, led - found.keys())


def topic_ids(admin: AdminClient, topics: set[str]) -> dict[str, bytes]:
    """Ask for the ids of topics, 16 bytes each; a topic that is gone or hidden is left out.

    Blocks.
    """
    if not topics:
        return {}
    futures = admin.describe_topics(
        TopicCollection(sorted(topics)), request_timeout=_TIMEOUT_SECONDS
    )
    found = {}
    for topic, future in futures.items():
        try:
            topic_id = future.result().topic_id
        except KafkaException as error:
            log.debug("topic %s: %s", topic, error.args[0].str())
            continue
        halves = topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits()
        found[topic] = b"".join(half.to_bytes(8, signed=True) for half in halves)
    return found


def _list(
    admin: AdminClient,
    partitions: list[ClientTopicPartition],
    spec: OffsetSpec,
    isolation: IsolationLevel,
) -> dict[TopicPartition, int]:
    if not partitions:
        return {}
    futures = admin.list_offsets(
        dict.fromkeys(partitions, spec), isolation_level=isolation, request_timeout=_TIMEOUT_SECONDS
    )
    found = {}
    for partition, future in futures.items():
        try:
            offset = future.result().offset
        except KafkaException as error:
            log.debug("%s-%d: %s", partition.topic, partition.partition, error.args[0].str())
            continue
        # librdkafka has -1001 and no error for a leader that was lost under the request.
        if offset >= 0:
            found[TopicPartition(partition.topic, partition.partition)] = offset
    return found
