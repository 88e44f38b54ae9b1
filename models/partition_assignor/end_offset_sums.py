"""The end offset sum of each task with state, as the leader computes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from caughtup.models.errors import ScenarioError
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.offsets import UNKNOWN_OFFSET_SUM, sum_offsets
from caughtup.models.partition_assignor.rebalance import Rebalance


def source_changelog_topics(rebalance: Rebalance) -> frozenset[str]:
    """Name the source topics from which stores are restored."""
    return frozenset(
        topic for one in rebalance.subtopologies.values() for topic in one.source_changelogs
    )


def sum_end_offsets(
    rebalance: Rebalance, changelogs: Mapping[TaskId, Sequence[TopicPartition]]
) -> Mapping[TaskId, int] | None:
    """Sum the end offsets of each task's changelogs; None if they couldn't be had.

    A changelog that was only just created counts as empty. Where a source topic serves as the
    changelog, the end is what the group has committed, because nothing beyond that is in the
    store yet (KAFKA-10085); without a commit it is 0. A sum that Java's long can't hold stays at
    the greatest that it can. Nobody is asked, so nothing can fail, where there is no partition to
    ask for.

    ``changelogs`` has the changelog partitions of the tasks with state. Raises ScenarioError
    ``missing_field`` for a changelog partition without an end offset.
    Source: StreamsPartitionAssignor.populateClientStatesMap and computeEndOffsetSumsByTask.
    """
    restored_from = source_changelog_topics(rebalance)
    ends, committed = rebalance.end_offsets, rebalance.committed
    sums: dict[TaskId, int] = {}
    for task, partitions in changelogs.items():
        offsets: list[int] = []
        for partition in partitions:
            if partition.topic in restored_from:
                if committed is None:
                    return None
                offsets.append(committed.get(partition, 0))
            elif partition.topic not in rebalance.new_topics:
                if ends is None:
                    return None
                if partition not in ends:
                    raise ScenarioError("missing_field", f"end_offsets.{partition}: is missing")
                offsets.append(ends[partition])
        sums[task] = sum_offsets(offsets)
    return sums


def unknown_sums(changelogs: Mapping[TaskId, Sequence[TopicPartition]]) -> Mapping[TaskId, int]:
    """Return the sums that Kafka goes on with when it couldn't get the end offsets: all unknown."""
    return dict.fromkeys(changelogs, UNKNOWN_OFFSET_SUM)
