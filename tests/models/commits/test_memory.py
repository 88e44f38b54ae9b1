"""What commits weigh: a thousandth of a large cluster is measured, in bytes a group-partition."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from caughtup.models.commits.applying import apply_live, apply_past
from caughtup.models.commits.steps import STEPS_UP_TO, StepBlocks
from caughtup.models.commits.table import CommitTable
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.polls.commit_columns import CommitColumns
from caughtup.models.wire.consumer_offsets import OffsetCommit
from tests.support.commits import columns

STEPS = 20
THOUSANDTH = 1_000


def poll(groups: int, partitions: int, step: int) -> CommitColumns:
    at_ms = 1_790_000_000_000 + step * 30_000
    commit = OffsetCommit(5_000_000_000 + step, -1, "", at_ms, -1, bytes(range(16)))
    return columns(
        (f"a-team.group-{group:03d}", TopicPartition(f"orders-{group % 3}", number), commit)
        for group in range(groups)
        for number in range(partitions)
    )


def weigh(groups: int, partitions: int, moving: int) -> float:
    """Return the bytes a group-partition of a cluster a thousand times as large.

    ``moving`` of its groups make steps.
    """
    past = poll(groups, partitions, 0)
    live = [poll(moving, partitions, step) for step in range(1, STEPS)] if moving else []
    gc.collect()
    tracemalloc.start()
    try:
        made = CommitTable()
        made.steps = StepBlocks([(limit // THOUSANDTH, kept) for limit, kept in STEPS_UP_TO], 16)
        apply_past(made, past)
        for step in live:
            apply_live(made, step, EndOffsetTable())
        gc.collect()
        ours = tracemalloc.Filter(True, "*/models/*")
        traces = tracemalloc.take_snapshot().filter_traces([ours]).statistics("filename")
        used = sum(one.size for one in traces)
    finally:
        tracemalloc.stop()
    assert len(made) == groups * partitions
    moved = [history for group, _, history in made if group == "a-team.group-000"]
    assert {len(history) > 5 for history in moved} == {bool(moving)}
    return used / len(made)


@pytest.mark.parametrize(
    ("groups", "moving", "limit"),
    [
        pytest.param(10, 0, 100, id="a million at rest"),
        pytest.param(10, 1, 135, id="a million, a tenth active", marks=pytest.mark.thorough),
        pytest.param(10, 10, 220, id="a million, all active"),
        pytest.param(30, 30, 220, id="three million, all active", marks=pytest.mark.thorough),
    ],
)
def test_a_group_partition_weighs_at_most_220_bytes(groups: int, moving: int, limit: int) -> None:
    assert weigh(groups, 100, moving) <= limit
