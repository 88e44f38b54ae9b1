"""A Faust application's tasks: topics and tables are grouped by their number of partitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from caughtup.followers.python.topology import TopicGroup, Topology
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.partition_assignor.rebalance import TopicsInfo
from caughtup.models.partition_assignor.task_partitions import TaskPartitions, group_partitions


class CountedTopology(Topology):
    """Topics and tables with the same number of partitions form one subtopology.

    Faust does not show which agent changes which table. With this grouping, partition p of a table
    is on the member that reads partition p of all topics that may change it. The number of
    partitions is the subtopology's number: 6_0 is partition 0 of all topics with six. So all
    members use the same names for tasks, before they know each other's topics.
    """

    def __init__(self) -> None:
        """Make an empty topology; ``keep`` sets the tables, ``count`` the topics."""
        self.topics: tuple[str, ...] = ()
        #: All changelog topics. The list object stays the same.
        self.changelogs: list[str] = []  # type: ignore[assignment]
        self._tables: dict[str, str] = {}
        self._everywhere: frozenset[str] = frozenset()
        self._counts: dict[str, int] = {}

    def keep(self, tables: Mapping[str, str], everywhere: Collection[str]) -> None:
        """Set the tables, by changelog topic, and the changelogs of global tables (``everywhere``).

        Global tables are on every member, and belong to no task.
        """
        self._tables = dict(sorted(tables.items()))
        self.changelogs[:] = self._tables
        self._everywhere = frozenset(everywhere)

    def count(self, counts: Mapping[str, int]) -> None:
        """Set the topics' numbers of partitions; topics without partitions are left out."""
        self._counts = {
            topic: count
            for topic, count in sorted(counts.items())
            if count and topic not in self._everywhere
        }
        self.topics = tuple(self._counts)

    def tasks(self, counts: Mapping[str, int], known: Collection[str]) -> TaskPartitions:
        """Return the tasks whose topics are all ``known``, with their changelog topics."""
        there = {topic: count for topic, count in counts.items() if topic in known}
        subtopologies = {}
        for number in sorted(set(there.values()) - {0}):
            group = self._group(number, there)
            changelogs = tuple(group.tables.values())
            subtopologies[number] = TopicsInfo(sources=group.topics, changelogs=changelogs)
        return group_partitions(subtopologies, there)

    def stateful(self, task: TaskId) -> bool:
        """Return whether a task keeps tables."""
        return bool(self.tables_of(task))

    def tables_of(self, task: TaskId) -> Mapping[str, TopicPartition]:
        """Return the changelog partition of each of a task's tables, by the table's name."""
        tables = self._group(task.subtopology, self._counts).tables
        return {name: TopicPartition(topic, task.partition) for name, topic in tables.items()}

    def task_reading(self, source: TopicPartition) -> TaskId | None:
        """Return the task that reads a source partition; None if there is none."""
        count = self._counts.get(source.topic)
        return None if count is None else TaskId(count, source.partition)

    def task_restored_from(self, changelog: TopicPartition) -> TaskId | None:
        """Return the task that a changelog partition restores; None if there is none."""
        return self.task_reading(changelog) if changelog.topic in self._tables else None

    def _group(self, number: int, counts: Mapping[str, int]) -> TopicGroup:
        """Return the topics and tables with this number of partitions.

        If tables have no topic with that number, their changelogs count as source topics.
        """
        topics = [topic for topic, count in sorted(counts.items()) if count == number]
        tables = {self._tables[topic]: topic for topic in topics if topic in self._tables}
        sources = tuple(topic for topic in topics if topic not in self._tables)
        return TopicGroup(sources or tuple(tables.values()), tables)
