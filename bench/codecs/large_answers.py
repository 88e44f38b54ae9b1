"""Large answers of a broker, encoded by kafka-python, with two decoders for each."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from caughtup.agents.kafka.protocol import answers, cluster_answers
from caughtup.models.ids import TopicPartition

TOPICS = 2_000
PARTITIONS = 50
_REPLICAS = (1, 2, 3)


class LargeAnswer(NamedTuple):
    """An encoded answer, and two decoders; ``theirs`` returns kafka-python's own objects."""

    name: str
    data: bytes
    ours: Callable[[bytes], object]
    theirs: Callable[[bytes], object]
    as_ours: Callable[[Any], Any]


def metadata_answer() -> LargeAnswer:
    """Write the answer to Metadata v7 of 2,000 topics of 50 partitions."""
    message = _kafka_python("metadata", "MetadataResponse")
    broker, topic = message.MetadataResponseBroker, message.MetadataResponseTopic
    partition = topic.MetadataResponsePartition
    written = message(
        throttle_time_ms=0,
        brokers=[broker(node_id=one, host=f"broker-{one}", port=9092) for one in _REPLICAS],
        cluster_id="cluster",
        controller_id=1,
        topics=_topics(
            lambda name, partitions: topic(
                error_code=0, name=name, is_internal=False, partitions=partitions
            ),
            lambda index: partition(
                error_code=0,
                partition_index=index,
                leader_id=1 + index % 3,
                leader_epoch=7,
                replica_nodes=list(_REPLICAS),
                isr_nodes=list(_REPLICAS),
                offline_replicas=[],
            ),
        ),
    ).encode(version=7)

    def as_ours(decoded: Any) -> Any:
        return {
            name: (
                tuple(row.replica_nodes),
                tuple(row.isr_nodes),
                None if row.leader_id == -1 else row.leader_id,
                row.leader_epoch,
                tuple(row.offline_replicas),
            )
            for name, row in _partitions(decoded.topics)
        }

    return LargeAnswer(
        "Metadata v7",
        written,
        lambda data: cluster_answers.decode_metadata(data)[1][0],
        lambda data: message.decode(data, version=7),
        as_ours,
    )


def topics_answer() -> LargeAnswer:
    """Return the same answer, with decoders of only the topics' names."""
    whole = metadata_answer()
    return LargeAnswer(
        f"{whole.name}, names",
        whole.data,
        cluster_answers.decode_metadata_topics,
        whole.theirs,
        lambda decoded: [topic.name for topic in decoded.topics],
    )


def reassignments_answer() -> LargeAnswer:
    """Write the answer to ListPartitionReassignments v0 of 100,000 partitions."""
    message = _kafka_python("admin", "ListPartitionReassignmentsResponse")
    topic = message.OngoingTopicReassignment
    partition = topic.OngoingPartitionReassignment
    written = message(
        throttle_time_ms=0,
        error_code=0,
        error_message=None,
        topics=_topics(
            lambda name, partitions: topic(name=name, partitions=partitions),
            lambda index: partition(
                partition_index=index,
                replicas=[1, 2, 3, 4],
                adding_replicas=[4],
                removing_replicas=[1],
            ),
        ),
    ).encode(version=0)

    def as_ours(decoded: Any) -> Any:
        return {
            name: (tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas))
            for name, row in _partitions(decoded.topics)
        }

    return LargeAnswer(
        "ListPartitionReassignments v0",
        written,
        lambda data: answers.decode_reassignments(data).reassignments,
        lambda data: message.decode(data, version=0),
        as_ours,
    )


def log_dirs_answer() -> LargeAnswer:
    """Write the answer to DescribeLogDirs v4 of 100,000 logs in one directory."""
    message = _kafka_python("admin", "DescribeLogDirsResponse")
    directory = message.DescribeLogDirsResult
    topic = directory.DescribeLogDirsTopic
    partition = topic.DescribeLogDirsPartition
    written = message(
        throttle_time_ms=0,
        error_code=0,
        results=[
            directory(
                error_code=0,
                log_dir="/var/lib/kafka",
                topics=_topics(
                    lambda name, partitions: topic(name=name, partitions=partitions),
                    lambda index: partition(
                        partition_index=index,
                        partition_size=1_000_000 + index,
                        offset_lag=0,
                        is_future_key=False,
                    ),
                ),
                total_bytes=1 << 40,
                usable_bytes=1 << 39,
            )
        ],
    ).encode(version=4)

    def as_ours(decoded: Any) -> Any:
        return {
            name: row.partition_size
            for found in decoded.results
            for name, row in _partitions(found.topics)
        }

    return LargeAnswer(
        "DescribeLogDirs v4",
        written,
        lambda data: answers.decode_log_dirs(data, 4).sizes,
        lambda data: message.decode(data, version=4),
        as_ours,
    )


def _topics(
    topic: Callable[[str, list[object]], object], partition: Callable[[int], object]
) -> list[object]:
    """Make all topics, from functions for a topic (name, partitions) and a partition (number)."""
    return [
        topic(f"payments.orders-{number:05}", [partition(index) for index in range(PARTITIONS)])
        for number in range(TOPICS)
    ]


def _partitions(topics: Iterable[Any]) -> Iterator[tuple[TopicPartition, Any]]:
    """Yield each partition of the decoded topics with its row."""
    for topic in topics:
        for row in topic.partitions:
            yield TopicPartition(topic.name, row.partition_index), row


def _kafka_python(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"kafka.protocol.{module}"), name)
