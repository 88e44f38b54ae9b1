"""Lags by column are what they are one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.histories.end_offsets import EndOffsetTable
from caughtup.models.ids import NUMBER_MAX, TopicPartition
from caughtup.models.lag.lag_columns import lag_columns
from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS, partition_lag
from caughtup.models.offsets import LONG_MAX, EndOffsets

offsets = st.integers(0, 20) | st.just(LONG_MAX)
times = st.integers(0, 3) | st.integers(0, 3).map(lambda ms: ms + CLOCK_ALLOWANCE_MS)


@st.composite
def end_offsets(draw: st.DrawFn) -> EndOffsets:
    start, stable, end = sorted(draw(st.tuples(offsets, offsets, offsets)))
    readable = draw(st.none() | st.integers(start, stable))
    return EndOffsets(start, stable, end, draw(times), readable)


@settings(print_blob=True, deadline=None)
@given(
    st.lists(st.dictionaries(st.integers(0, 4), st.none() | end_offsets()), max_size=4),
    st.dictionaries(st.integers(0, 6), st.tuples(offsets, times)),
)
def test_lags_by_column_are_those_of_each_partition(
    samples: list[dict[int, EndOffsets | None]], commits: dict[int, tuple[int, int]]
) -> None:
    ends = EndOffsetTable()
    numbers = np.array(sorted(commits), np.int64)
    offset = np.array([commits[number][0] for number in sorted(commits)], np.int64)
    commit_ms = np.array([commits[number][1] for number in sorted(commits)], np.int64)
    for sample in [{}, *samples]:
        for number, end in sample.items():
            ends.apply(TopicPartition("orders", number), end)
        columns = ends.columns("orders")
        assert columns is not None
        found = lag_columns(numbers, offset, commit_ms, columns)
        for at, (number, (committed, at_ms)) in enumerate(sorted(commits.items())):
            latest = ends.latest(TopicPartition("orders", number))
            assert found.known[at] == (latest is not None)
            if latest is not None:
                lag = partition_lag(committed, latest, at_ms)
                assert lag == (
                    found.lag[at],
                    found.lag_committed_view[at],
                    True,
                    found.out_of_range[at],
                )


def test_a_partition_of_a_number_that_somebody_made_up_takes_no_room() -> None:
    ends = EndOffsetTable()
    ends.apply(TopicPartition("orders", 0), EndOffsets(0, 1, 1, 1))
    assert ends.columns("orders") is not None
    ends.apply(TopicPartition("orders", NUMBER_MAX), EndOffsets(0, 1, 1, 1))
    assert ends.columns("orders") is None
    ends.apply(TopicPartition("orders", NUMBER_MAX), None)
    assert ends.columns("orders") is not None
    nobody = ends.columns("clicks")
    assert nobody is not None
    assert len(nobody.end) == 0
