"""An application's topology: what it reads and keeps, from which its tasks follow."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.partition_assignor.rebalance import TopicsInfo
from caughtup.models.partition_assignor.task_partitions import TaskPartitions, group_partitions


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """Topics that are read together: partition p of each of them is one task's.

    ``tables`` names the tables that each task keeps, each with its changelog topic, which has
    as many partitions as the widest of the topics. A group without tables has no state.
    """

    topics: tuple[str, ...]
    tables: Mapping[str, str] = field(default_factory=dict)


class Topology:
    """An application's topic groups; the position of each in the sequence is its subtopology.

    Raises ValueError where no topic is read, or one is read by two groups or restored by two.
    """

    def __init__(self, groups: Sequence[TopicGroup]) -> None:
        self.groups = tuple(groups)
        #: Every topic that is read.
        self.topics = tuple(sorted(topic for group in self.groups for topic in group.topics))
        #: Every changelog topic.
        self.changelogs = tuple(
            sorted(topic for group in self.groups for topic in group.tables.values())
        )
        if not self.groups or not all(group.topics for group in self.groups):
            raise ValueError("a topic group has no topics")
        for names in (self.topics, self.changelogs):
            twice = sorted(topic for topic in set(names) if names.count(topic) > 1)
            if twice:
                raise ValueError(f"topic {twice[0]} is named twice")

    def tasks(self, counts: Mapping[str, int], known: Collection[str]) -> TaskPartitions:
        """Return the tasks of the topic groups whose topics are all ``known``.

        ``counts`` has the number of partitions of topics; one that it lacks has none.
        """
        subtopologies = {
            number: TopicsInfo(sources=group.topics, changelogs=tuple(group.tables.values()))
            for number, group in enumerate(self.groups)
            if all(topic in known for topic in group.topics)
        }
        return group_partitions(
            subtopologies, {topic: counts.get(topic, 0) for topic in self.topics}
        )

    def stateful(self, task: TaskId) -> bool:
        """Return whether a task keeps tables."""
        return task.subtopology < len(self.groups) and bool(self.groups[task.subtopology].tables)

    def tables_of(self, task: TaskId) -> Mapping[str, TopicPartition]:
        """Name a task's tables, each with its changelog partition."""
        tables = self.groups[task.subtopology].tables if self.stateful(task) else {}
        return {name: TopicPartition(topic, task.partition) for name, topic in tables.items()}

    def task_reading(self, source: TopicPartition) -> TaskId | None:
        """Name the task that reads a source partition."""
        for number, group in enumerate(self.groups):
            if source.topic in group.topics:
                return TaskId(number, source.partition)
        return None

    def task_restored_from(self, changelog: TopicPartition) -> TaskId | None:
        """Name the task whose table a changelog partition restores."""
        for number, group in enumerate(self.groups):
            if changelog.topic in group.tables.values():
                return TaskId(number, changelog.partition)
        return None
