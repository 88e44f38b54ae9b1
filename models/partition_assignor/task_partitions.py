"""The tasks of a topology, the partitions that each reads, and those that restore its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from caughtup.models.errors import ScenarioError
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.partition_assignor.rebalance import TopicsInfo


@dataclass(frozen=True)
class TaskPartitions:
    """The tasks of a topology, in TaskId order, and their partitions, sorted.

    ``changelogs`` has the stateful tasks only.
    """

    sources: Mapping[TaskId, tuple[TopicPartition, ...]]
    changelogs: Mapping[TaskId, tuple[TopicPartition, ...]]

    @cached_property
    def stateful(self) -> tuple[TaskId, ...]:
        """The stateful tasks."""
        return tuple(self.changelogs)

    @cached_property
    def stateless(self) -> tuple[TaskId, ...]:
        """The stateless tasks."""
        return tuple(task for task in self.sources if task not in self.changelogs)

    @cached_property
    def readers(self) -> Mapping[TopicPartition, TaskId]:
        """The task that reads each source partition."""
        return {one: task for task, partitions in self.sources.items() for one in partitions}


def group_partitions(
    subtopologies: Mapping[int, TopicsInfo], counts: Mapping[str, int]
) -> TaskPartitions:
    """Return the tasks of subtopologies, each with as many as its widest source has partitions.

    ``counts`` has the number of partitions of each source topic. A task's changelog partitions have
    its number, even if a source that serves as a changelog has too few partitions for that. Raises
    ScenarioError ``missing_field`` for a source without a count. Source:
    PartitionGrouper.partitionGroups, ChangelogTopics.setup.
    """
    sources: dict[TaskId, tuple[TopicPartition, ...]] = {}
    changelogs: dict[TaskId, tuple[TopicPartition, ...]] = {}
    for number, subtopology in sorted(subtopologies.items()):
        read = sorted({*subtopology.sources, *subtopology.source_changelogs})
        for topic in read:
            if topic not in counts:
                raise ScenarioError("missing_field", f"partitions.{topic}: is missing")
        logs = sorted({*subtopology.changelogs, *subtopology.source_changelogs})
        for partition in range(max((counts[topic] for topic in read), default=0)):
            task = TaskId(number, partition)
            sources[task] = tuple(
                TopicPartition(topic, partition) for topic in read if partition < counts[topic]
            )
            if logs:
                changelogs[task] = tuple(TopicPartition(topic, partition) for topic in logs)
    return TaskPartitions(sources, changelogs)
