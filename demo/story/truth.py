"""The reference for comparisons: the application's own reports, and Kafka's log."""

from __future__ import annotations

import json
from typing import NamedTuple

from caughtup.demo.apps.streams import StreamsApplication
from caughtup.demo.cluster.cluster import EmbeddedCluster
from caughtup.demo.cluster.topics import read_topic
from caughtup.demo.story.stage import View
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.polls.batch import decode_batch
from caughtup.models.records.topics import RECOMMENDATIONS, with_prefix


class CopyPlace(NamedTuple):
    """A copy's lag and its changelogs' end, in offsets, as the application reports them."""

    lag: int
    end: int


class GroupMoment(NamedTuple):
    """The time (ms) of a generation, and its number of members."""

    at_ms: int
    members: int


class GroupHistory(NamedTuple):
    """The times (ms) of a group's commits, by partition, and its generations with members."""

    commits: dict[TopicPartition, list[int]]
    generations: dict[int, GroupMoment]


def application_lags(application: StreamsApplication) -> dict[tuple[str, str], CopyPlace]:
    """Return all instances' copies: lag and end over the stores, by process id and task.

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
    """Return all instances' active tasks, by process id."""
    return {
        str(application.process_id(name)): {
            str(task) for thread in application.threads(name).values() for task in thread.active
        }
        for name in application.instances
    }


def generations_in_log(cluster: EmbeddedCluster, group: str) -> set[int]:
    """Return the numbers of a group's generations with members, from Kafka's log."""
    found = set()
    for _, _, key, value in read_topic(cluster, "__consumer_offsets"):
        metadata = decode_batch([(key, value)]).groups.get(group)
        if metadata is not None and metadata.members:
            found.add(metadata.generation)
    return found


def group_history(cluster: EmbeddedCluster, group: str) -> GroupHistory:
    """Return the times of a group's commits and generations, from Kafka's log."""
    commits: dict[TopicPartition, list[int]] = {}
    generations: dict[int, GroupMoment] = {}
    for _, _, key, value in read_topic(cluster, "__consumer_offsets"):
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


def recommendations_in_log(cluster: EmbeddedCluster, group: str) -> list[View]:
    """Read every recommendation for a group, in the order of publishing."""
    return [
        json.loads(value)
        for _, _, key, value in read_topic(cluster, with_prefix(RECOMMENDATIONS))
        if key == group.encode() and value is not None
    ]
