"""An application's topology: its source topics and tables, which determine its tasks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.partition_assignor.rebalance import TopicsInfo
from caughtup.models.partition_assignor.task_partitions import TaskPartitions, group_partitions

Resume = Callable[[TaskId], None]


class Copies(Protocol):
    """An application's copies of its tables; ``ChangelogTables`` is one that keeps them in memory.

    All methods are called on the event loop, and must not block.
    """

    def positions(self) -> Mapping[TopicPartition, int]:
        """Return the next offset to restore of each changelog partition with a copy here."""
        ...

    def restored(self, task: TaskId) -> bool:
        """Return whether a task has been restored since it became active here."""
        ...

    def assigned(
        self, active: frozenset[TaskId], standby: frozenset[TaskId], resume: Resume
    ) -> None:
        """Apply an assignment of active and standby tasks with state; drop all other copies.

        Call ``resume`` for each active, in every rebalance, once its tables have everything in
        their changelogs: another process may have written there while the group took this one for
        dead. Until then its source partitions are paused.
        """
        ...


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """Topics that are read together: partition p of each belongs to the same task.

    ``tables``: the changelog topic of each table, which has as many partitions as the widest of the
    topics. A group without tables has no state.
    """

    topics: tuple[str, ...]
    tables: Mapping[str, str] = field(default_factory=dict)


class Topology:
    """An application's topic groups; the position of each in the sequence is its subtopology.

    Raises ValueError if there is no topic, or if two groups read or restore the same one.
    """

    def __init__(self, groups: Sequence[TopicGroup]) -> None:
        self.groups = tuple(groups)
        #: All source topics.
        self.topics = tuple(sorted(topic for group in self.groups for topic in group.topics))
        #: All changelog topics.
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

        ``counts``: the topics' numbers of partitions; missing topics have none.
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
        """Return the changelog partition of each of a task's tables, by the table's name."""
        tables = self.groups[task.subtopology].tables if self.stateful(task) else {}
        return {name: TopicPartition(topic, task.partition) for name, topic in tables.items()}

    def task_reading(self, source: TopicPartition) -> TaskId | None:
        """Return the task that reads a source partition; None if there is none."""
        for number, group in enumerate(self.groups):
            if source.topic in group.topics:
                return TaskId(number, source.partition)
        return None

    def task_restored_from(self, changelog: TopicPartition) -> TaskId | None:
        """Return the task that a changelog partition restores; None if there is none."""
        for number, group in enumerate(self.groups):
            if changelog.topic in group.tables.values():
                return TaskId(number, changelog.partition)
        return None
