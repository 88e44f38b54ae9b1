"""What the scripted demo compares with: the application's own word, and the log's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError
from confluent_kafka import TopicPartition as ConsumedPartition

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.polls.batch import decode_batch
from caughtup.models.records.topics import RECOMMENDATIONS, with_prefix

_POLL_SECONDS = 1.0
_END_SECONDS = 30.0


class CopyPlace(NamedTuple):
    """Where a copy is in its changelogs, by the application's own word, in offsets."""

    lag: int
    end: int


class GroupMoment(NamedTuple):
    """When a generation's members had their assignments (ms), and how many members it had."""

    at_ms: int
    members: int


class GroupHistory(NamedTuple):
    """The times (ms) of a group's commits, by partition, and its generations with members."""

    commits: dict[TopicPartition, list[int]]
    generations: dict[int, GroupMoment]


def application_lags(application: StreamsApplication) -> dict[tuple[str, str], CopyPlace]:
    """Ask every instance where its copies are: (process id, task) → lag and end, over its stores.

    Source: ``KafkaStreams.allLocalStorePartitionLags``.
    """
    found: dict[tuple[str, str], CopyPlace] = {}
    for name in application.instances:
        process = str(application.process_id(name))
        subtopology_of = {
            store: subtopology
            for subtopology, stores in application.subtopology_stores(name).items()
            for store in stores
        }
        for store, partitions in application.lags(name).items():
            for partition, place in partitions.items():
                key = process, str(TaskId(subtopology_of[store], partition))
                lag, end = found.get(key, (0, 0))
                found[key] = CopyPlace(lag + place.lag, end + place.end)
    return found


def active_tasks(application: StreamsApplication) -> dict[str, set[str]]:
    """Ask every instance which tasks it runs: process id → tasks."""
    return {
        str(application.process_id(name)): {
            str(task) for thread in application.threads(name).values() for task in thread.active
        }
        for name in application.instances
    }


def generations_in_log(cluster: EmbeddedCluster, group: str) -> set[int]:
    """Read every generation with members that a group ever had, from the log itself."""
    found = set()
    for key, value in _records(cluster, "__consumer_offsets"):
        metadata = decode_batch([(key, value)]).groups.get(group)
        if metadata is not None and metadata.members:
            found.add(metadata.generation)
    return found


def group_history(cluster: EmbeddedCluster, group: str) -> GroupHistory:
    """Read when a group committed and rebalanced, from the log itself."""
    commits: dict[TopicPartition, list[int]] = {}
    generations: dict[int, GroupMoment] = {}
    for key, value in _records(cluster, "__consumer_offsets"):
        batch = decode_batch([(key, value)])
        for of, commit in batch.commits.by_key().items():
            if of.group == group and commit is not None:
                partition = TopicPartition(of.topic, of.partition)
                commits.setdefault(partition, []).append(commit.commit_timestamp_ms)
        metadata = batch.groups.get(group)
        if metadata is not None and metadata.members:
            moment = GroupMoment(metadata.state_timestamp_ms, len(metadata.members))
            generations.setdefault(metadata.generation, moment)
    return GroupHistory(
        {partition: sorted(times) for partition, times in sorted(commits.items())},
        dict(sorted(generations.items())),
    )


def recommendations_in_log(cluster: EmbeddedCluster, group: str) -> list[dict[str, Any]]:
    """Read every recommendation for a group, in the order of publishing."""
    return [
        json.loads(value)
        for key, value in _records(cluster, with_prefix(RECOMMENDATIONS))
        if key == group.encode() and value is not None
    ]


def _records(cluster: EmbeddedCluster, topic: str) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Return every record that a topic holds now, read_committed, and maybe some later ones.

    Ended by the offsets that there are now: under load there may be no moment without another
    record to come, and no end to be told of. Where the log ends with a marker, it is told.
    """
    consumer = Consumer(
        {
            **cluster.client_config(),
            "group.id": "caughtup-demo",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    try:
        partitions = consumer.list_topics(topic).topics[topic].partitions
        consumer.assign([ConsumedPartition(topic, p, OFFSET_BEGINNING) for p in partitions])
        ends = {
            p: consumer.get_watermark_offsets(ConsumedPartition(topic, p), _END_SECONDS)[1]
            for p in partitions
        }
        unfinished = set(partitions)
        while unfinished:
            for message in consumer.consume(1_000, _POLL_SECONDS):
                error = message.error()
                if error is None:
                    yield message.key(), message.value()
                    if message.offset() + 1 >= ends[message.partition()]:
                        unfinished.discard(message.partition())
                elif error.code() == KafkaError._PARTITION_EOF:
                    unfinished.discard(message.partition())
    finally:
        consumer.close()
