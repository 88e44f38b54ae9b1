"""Lag, of a group's partition in both views and of a task's copy in Kafka's own arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.lag.partition_lag import CLOCK_ALLOWANCE_MS, PartitionLag, partition_lag
from caughtup.models.offsets import (
    LATEST_OFFSET,
    LONG_MAX,
    UNKNOWN_OFFSET_SUM,
    EndOffsets,
    sum_offsets,
    task_lag,
)

offsets = st.integers(0, LONG_MAX)


@st.composite
def end_offsets(draw: st.DrawFn) -> EndOffsets:
    start, stable, end = sorted(draw(st.tuples(offsets, offsets, offsets)))
    return EndOffsets(start, stable, end, 0)


@pytest.mark.parametrize(
    ("committed", "lag", "in_committed_view"),
    [
        pytest.param(40, 50, 60, id="behind"),
        pytest.param(90, 0, 10, id="only an open transaction is left"),
        pytest.param(95, 0, 5, id="committed inside an open transaction"),
        pytest.param(100, 0, 0, id="at the end"),
        pytest.param(120, 0, 0, id="a commit newer than the end offsets"),
        pytest.param(20, 70, 80, id="at the log start"),
        pytest.param(5, 70, 80, id="before the log start, where nothing can be read"),
        pytest.param(0, 70, 80, id="at 0 of a log that begins later"),
    ],
)
def test_lag_counts_to_the_last_stable_offset_and_in_the_other_view_to_the_log_end(
    committed: int, lag: int, in_committed_view: int
) -> None:
    ends = EndOffsets(start_offset=20, last_stable_offset=90, end_offset=100, as_of_ms=0)
    assert partition_lag(committed, ends) == PartitionLag(lag, in_committed_view, True)


def test_a_partition_that_was_never_committed_lags_from_the_log_start() -> None:
    ends = EndOffsets(start_offset=20, last_stable_offset=90, end_offset=100, as_of_ms=0)
    assert partition_lag(None, ends) == PartitionLag(70, 80, False)


def test_a_commit_of_0_is_a_commit() -> None:
    assert partition_lag(0, EndOffsets(0, 5, 5, 0)) == PartitionLag(5, 5, True)


def test_a_commit_beyond_the_log_end_is_out_of_range_only_if_it_is_older_than_the_sample() -> None:
    ends = EndOffsets(start_offset=20, last_stable_offset=90, end_offset=100, as_of_ms=60_000)
    older = 60_000 - CLOCK_ALLOWANCE_MS - 1
    assert partition_lag(101, ends, older) == PartitionLag(70, 80, True, out_of_range=True)
    assert partition_lag(101, ends, older + 1) == PartitionLag(0, 0, True)
    assert partition_lag(100, ends, older) == PartitionLag(0, 0, True)


@settings(print_blob=True, deadline=None)
@given(st.none() | st.integers(-1, LONG_MAX), end_offsets())
def test_lag_is_never_negative_nor_more_than_the_log_holds(
    committed: int | None, ends: EndOffsets
) -> None:
    found = partition_lag(committed, ends)
    assert 0 <= found.lag <= ends.last_stable_offset - ends.start_offset
    assert found.lag <= found.lag_committed_view <= ends.end_offset - ends.start_offset


@settings(print_blob=True, deadline=None)
@given(st.integers(0, LONG_MAX - 1), end_offsets())
def test_a_commit_further_on_never_lags_more(committed: int, ends: EndOffsets) -> None:
    assert partition_lag(committed + 1, ends).lag <= partition_lag(committed, ends).lag


@pytest.mark.parametrize(
    ("offset_sum", "end_offset_sum", "lag"),
    [
        (LATEST_OFFSET, 500, LATEST_OFFSET),
        (UNKNOWN_OFFSET_SUM, 500, UNKNOWN_OFFSET_SUM),
        (0, 500, 500),
        (499, 500, 1),
        (500, 500, 0),
        pytest.param(501, 500, 500, id="a recreated changelog is restored from its start"),
        (0, 0, 0),
    ],
)
def test_a_copys_lag_is_what_kafkas_client_state_computes(
    offset_sum: int, end_offset_sum: int, lag: int
) -> None:
    assert task_lag(offset_sum, end_offset_sum) == lag


def test_a_sum_that_overflows_stays_at_javas_greatest_long() -> None:
    assert sum_offsets([]) == 0
    assert sum_offsets([1, 2, 3]) == 6
    assert sum_offsets([LONG_MAX, 1]) == sum_offsets([LONG_MAX]) == LONG_MAX == 2**63 - 1
