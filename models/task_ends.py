"""End offset sums of tasks at one moment, each as an interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from caughtup.models.end_offsets import EndOffsetTable
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.lag import sum_offsets
from caughtup.models.topology import CHANGELOG, Changelogs


class EndOffsetSum(NamedTuple):
    """A task's end offset sum lies between ``low`` and ``high``, in offsets."""

    low: int
    high: int


def changelog_partitions(
    task: TaskId, changelogs: Changelogs, partition_counts: Mapping[str, int]
) -> list[TopicPartition]:
    """Name the changelog partitions of a task; none for a stateless one.

    A store's changelog has one for every task, those that weren't seen yet too. A source topic
    that serves as a changelog may have fewer.
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
) -> dict[TaskId, EndOffsetSum | None]:
    """Bound every stateful task's end offset sum at a moment between two (ms).

    ``reported`` is the greatest offset sum that any client reported for a task: the end can't
    have been below it, unless it reports on a changelog that was recreated since. None for a task of which no sample was taken since ``after_ms``. Stateless
    tasks are left out. Source: StreamsPartitionAssignor.getEndOffsets, log end offsets of the
    changelogs (read_uncommitted).
    """
    counts = ends.partition_counts()
    sums: dict[TaskId, EndOffsetSum | None] = {}
    for task in sorted(tasks):
        partitions = changelog_partitions(task, changelogs, counts)
        if not partitions:
            continue
        bounds = [ends.bounds(partition, before_ms, after_ms) for partition in partitions]
        known = [b for b in bounds if b is not None]
        if len(known) < len(bounds):
            sums[task] = None
            continue
        high = sum_offsets([b[1] for b in known])
        restored = reported.get(task, 0)
        low = max(sum_offsets([b[0] for b in known]), restored if restored <= high else 0)
        sums[task] = EndOffsetSum(low, high)
    return sums
