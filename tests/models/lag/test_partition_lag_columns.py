"""Lags by column are what they are one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.histories.end_columns import UNKNOWN_ROW
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import NUMBER_MAX, TopicPartition
from caughtup.models.lag.partition_lag import (
    CLOCK_ALLOWANCE_MS,
    lag_columns,
    partition_lag,
    retention_columns,
)
from caughtup.models.lag.rates import retention_used
from caughtup.models.offsets import LONG_MAX, EndOffsets
from caughtup.models.polls.commit_columns import NO_OFFSET

offsets = st.integers(0, 20) | st.integers(LONG_MAX - 9, LONG_MAX)
numbers = st.integers(0, 6) | st.just(NUMBER_MAX)
times = st.integers(0, 3) | st.integers(0, 3).map(lambda ms: ms + CLOCK_ALLOWANCE_MS)


@st.composite
def end_offsets(draw: st.DrawFn) -> EndOffsets:
    start, stable, end = sorted(draw(st.tuples(offsets, offsets, offsets)))
    readable = draw(st.none() | st.integers(start, stable))
    return EndOffsets(start, stable, end, draw(times), readable)


@settings(print_blob=True, deadline=None)
@given(
    st.lists(st.dictionaries(numbers, st.none() | end_offsets()), max_size=4),
    st.dictionaries(numbers, st.tuples(st.just(NO_OFFSET) | offsets, times)),
)
def test_lags_by_column_are_those_of_each_partition(
    samples: list[dict[int, EndOffsets | None]], commits: dict[int, tuple[int, int]]
) -> None:
    ends = EndOffsetTable()
    partitions = np.array(sorted(commits), np.int64)
    offset = np.array([commits[number][0] for number in sorted(commits)], np.int64)
    commit_ms = np.array([commits[number][1] for number in sorted(commits)], np.int64)
    for sample in [{}, *samples]:
        for number, end in sample.items():
            ends.apply(TopicPartition("orders", number), end)
        newest = ends.columns.of(ends.rows("orders", partitions))
        found = lag_columns(offset, commit_ms, newest)
        is_used, used = retention_columns(offset, newest)
        for at, (number, (committed, at_ms)) in enumerate(sorted(commits.items())):
            latest = ends.latest(TopicPartition("orders", number))
            assert found.known[at] == (latest is not None)
            assert is_used[at] == (latest is not None and committed != NO_OFFSET)
            if latest is not None:
                lag = partition_lag(None if committed == NO_OFFSET else committed, latest, at_ms)
                assert lag == (
                    found.lag[at],
                    found.lag_committed_view[at],
                    committed != NO_OFFSET,
                    found.out_of_range[at],
                )
                if is_used[at]:
                    assert used[at] == retention_used(committed, latest)


def test_a_partition_of_a_number_that_somebody_made_up_takes_one_row() -> None:
    ends = EndOffsetTable()
    for number in (0, 1, NUMBER_MAX):
        ends.apply(TopicPartition("orders", number), EndOffsets(number, LONG_MAX, LONG_MAX, 1))
    some = np.array([NUMBER_MAX, 5, 1])
    assert ends.columns.of(ends.rows("orders", some)).start.tolist() == [NUMBER_MAX, 0, 1]
    assert ends.rows("clicks", some).tolist() == [UNKNOWN_ROW] * 3
    assert len(ends.columns.end) < 100
