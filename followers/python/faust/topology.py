"""A Faust application's tasks: what it reads and keeps, by numbers of partitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from caughtup.followers.python.topology import TopicGroup, Topology
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.partition_assignor.rebalance import TopicsInfo
from caughtup.models.partition_assignor.task_partitions import TaskPartitions, group_partitions


class CountedTopology(Topology):
    """Topics with the same number of partitions are read together, as Faust's tables need it.

    Faust doesn't say which agent changes which table; whatever has as many partitions is kept
    together, so that partition p of a table is where partition p of all topics is read that may
    change it. The number of partitions is the subtopology: 6_0 is partition 0 of all that have
    six. So every member names tasks alike, before it knows all topics of the others.
    """

    def __init__(self) -> None:
        """Begin with no topics; ``keep`` names the tables, ``count`` the topics."""
        self.topics: tuple[str, ...] = ()
        #: Every changelog topic; the list stays the same one.
        self.changelogs: list[str] = []  # type: ignore[assignment]
        self._tables: dict[str, str] = {}
        self._everywhere: frozenset[str] = frozenset()
        self._counts: dict[str, int] = {}

    def keep(self, tables: Mapping[str, str], everywhere: Collection[str]) -> None:
        """Learn the tables, by their changelog topics, and the changelogs of global tables.

        Global tables are everywhere, so that they belong to no task.
        """
        self._tables = dict(sorted(tables.items()))
        self.changelogs[:] = self._tables
        self._everywhere = frozenset(everywhere)

    def count(self, counts: Mapping[str, int]) -> None:
        """Learn how many partitions topics have; those without any are left out."""
        self._counts = {
            topic: count
            for topic, count in sorted(counts.items())
            if count and topic not in self._everywhere
        }
        self.topics = tuple(self._counts)

    def tasks(self, counts: Mapping[str, int], known: Collection[str]) -> TaskPartitions:
        """Return the tasks of the topics that are all ``known``, changelog topics among them."""
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
        """Name a task's tables, each with its changelog partition."""
        tables = self._group(task.subtopology, self._counts).tables
        return {name: TopicPartition(topic, task.partition) for name, topic in tables.items()}

    def task_reading(self, source: TopicPartition) -> TaskId | None:
        """Name the task that reads a source partition."""
        count = self._counts.get(source.topic)
        return None if count is None else TaskId(count, source.partition)

    def task_restored_from(self, changelog: TopicPartition) -> TaskId | None:
        """Name the task whose table a changelog partition restores."""
        return self.task_reading(changelog) if changelog.topic in self._tables else None

    def _group(self, number: int, counts: Mapping[str, int]) -> TopicGroup:
        """Return the topics and tables that have this many partitions.

        A table that no topic of as many partitions could change is read as if it were one.
        """
        topics = [topic for topic, count in sorted(counts.items()) if count == number]
        tables = {self._tables[topic]: topic for topic in topics if topic in self._tables}
        sources = tuple(topic for topic in topics if topic not in self._tables)
        return TopicGroup(sources or tuple(tables.values()), tables)
