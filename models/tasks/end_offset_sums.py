"""End offset sums of tasks at one moment, each as an interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offsets import EndOffsetTable
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.offsets import sum_offsets
from caughtup.models.tasks.topology import CHANGELOG, Changelogs


@dataclass(frozen=True, slots=True)
class SourceCommits:
    """The application's commits on its own source topics: the topics, and the commits by partition.

    For the leader, a source that serves as a changelog ends at the committed offset, since nothing
    beyond that is in a store (KAFKA-10085). ``clock_allowance_ms`` is how far the coordinator's
    clock, which dates commits, may be ahead of ours.
    """

    topics: frozenset[str] = frozenset()
    histories: Mapping[TopicPartition, CommitHistory] = field(default_factory=dict)
    clock_allowance_ms: int = 0

    def bounds(self, partition: TopicPartition, before_ms: int, after_ms: int) -> tuple[int, int]:
        """Return bounds of the committed offset at a moment between two (ms).

        Without a commit it is 0. The offset before the oldest known commit counts as 0, too.
        """
        history = self.histories.get(partition)
        if history is None:
            return 0, 0
        high = history.committed_at(after_ms + self.clock_allowance_ms) or 0
        return min(history.committed_at(before_ms) or 0, high), high


def changelog_partitions(
    task: TaskId, changelogs: Changelogs, partition_counts: Mapping[str, int]
) -> list[TopicPartition]:
    """Return the changelog partitions of a task; none for a stateless one.

    A store's changelog has one for every task, even if it hasn't been seen yet. A source topic that
    serves as a changelog may have fewer.
    """
    return [
        TopicPartition(topic, task.partition)
        for topic in changelogs.of.get(task.subtopology, ())
        if topic.endswith(CHANGELOG)
        or task.partition < partition_counts.get(topic, task.partition + 1)
    ]


def end_offset_sums(
    tasks: Iterable[TaskId],
    changelogs: Changelogs,
    ends: EndOffsetTable,
    reported: Mapping[TaskId, int],
    before_ms: int,
    after_ms: int,
    committed: SourceCommits | None = None,
) -> dict[TaskId, EndOffsetSum | None]:
    """Return bounds of every stateful task's end offset sum at a moment between two (ms).

    ``reported`` is the greatest offset sum that any client reported for a task: the end is no less,
    unless the report is on a changelog that was recreated since. ``committed`` has the
    application's sources, in case one of them serves as a changelog. None for a task without a
    sample since ``after_ms``. Stateless tasks are left out. Source:
    StreamsPartitionAssignor.populateClientStatesMap, log end offsets of the changelogs
    (read_uncommitted).
    """
    sources = committed or SourceCommits()
    counts = ends.partition_counts()
    sums: dict[TaskId, EndOffsetSum | None] = {}
    for task in sorted(tasks):
        partitions = changelog_partitions(task, changelogs, counts)
        if not partitions:
            continue
        bounds = [
            sources.bounds(partition, before_ms, after_ms)
            if partition.topic in sources.topics
            else ends.bounds(partition, before_ms, after_ms)
            for partition in partitions
        ]
        known = [b for b in bounds if b is not None]
        if len(known) < len(bounds):
            sums[task] = None
            continue
        high = sum_offsets([b[1] for b in known])
        restored = reported.get(task, 0)
        low = max(sum_offsets([b[0] for b in known]), restored if restored <= high else 0)
        sums[task] = EndOffsetSum(low, high)
    return sums
