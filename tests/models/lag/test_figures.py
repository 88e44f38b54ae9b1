"""Lag in seconds, against a log of which the moment of every single record is known."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.histories.end_offsets import EndOffsetHistory
from caughtup.models.lag.figures import LagSeconds, lag_seconds
from caughtup.models.offsets import EndOffsets
from tests.support.sizes import daily


def samples(*seen: tuple[int, int]) -> EndOffsetHistory:
    """A history of samples: (log end offset, second)."""
    history = EndOffsetHistory(EndOffsets(0, seen[0][0], seen[0][0], seen[0][1] * 1000))
    for end, second in seen[1:]:
        history.add(EndOffsets(0, end, end, second * 1000))
    return history


def age(position: int, history: EndOffsetHistory, now: int) -> LagSeconds | None:
    """The age at second ``now`` of the record at ``position``."""
    return lag_seconds(position, history.latest.end_offset - position, history, now * 1000)


def test_a_record_is_as_old_as_the_moment_at_which_the_log_passed_it() -> None:
    history = samples((0, 0), (100, 10), (200, 20))
    assert age(100, history, 20) == LagSeconds(9.95, 9.95, "interpolated")
    assert age(150, history, 20) == LagSeconds(4.95, 5.05, "interpolated")
    assert age(199, history, 25) == LagSeconds(5.05, 9.95, "interpolated")


def test_the_rate_of_another_time_does_not_enter() -> None:
    """Ten thousand records in a second long ago, and ten since: the oldest of these is unread."""
    history = samples((0, 0), (10_000, 1), (10_000, 3_000), (10_010, 3_001))
    assert age(10_000, history, 3_060) == LagSeconds(59.95, 0.95, "interpolated")


def test_an_idle_producer_makes_no_lag_where_nothing_is_unread() -> None:
    assert age(10, samples((10, 0), (10, 3_600)), 3_601) == LagSeconds(0.0, 1.0, "caught_up")


def test_an_idle_producer_does_not_hide_a_record_that_nobody_reads() -> None:
    history = samples((10, 0), (10, 100), (11, 101), (11, 3_700))
    assert age(10, history, 3_701) == LagSeconds(3_600.5, 0.5, "interpolated")


def test_time_in_which_a_producer_was_idle_is_not_spread_over_its_records() -> None:
    """An hour of silence, then a hundred records: they are a second old, not half an hour."""
    history = samples((0, 0), (0, 3_600), (100, 3_601))
    assert age(0, history, 3_601) == LagSeconds(0.995, 0.995, "interpolated")


def test_a_record_older_than_the_history_has_at_least_the_historys_age() -> None:
    history = samples((100, 1_000), (200, 1_010))
    assert age(99, history, 1_015) == LagSeconds(15.0, None, "at_least")
    assert LagSeconds(15.0, None, "at_least").certain_seconds == 15.0


def test_one_sample_gives_no_age() -> None:
    assert age(5, samples((10, 0)), 1) is None
    assert age(10, samples((10, 0)), 1) == LagSeconds(0.0, 1.0, "caught_up")


def test_a_log_that_went_backwards_has_the_age_of_its_new_records() -> None:
    history = samples((500, 0), (600, 10), (5, 20), (9, 30))
    assert age(3, history, 31) == LagSeconds(11.0, None, "at_least")
    assert age(7, history, 31) == LagSeconds(4.75, 6.25, "interpolated")


def test_a_commit_newer_than_the_samples_is_caught_up() -> None:
    assert age(12, samples((5, 0), (10, 10)), 10) == LagSeconds(0.0, 0.0, "caught_up")


def test_a_clock_that_went_back_makes_no_negative_age() -> None:
    found = age(150, samples((0, 0), (100, 10), (200, 20)), 3)
    assert found is not None
    assert found.seconds == 0.0


def test_what_is_certain_is_the_age_less_its_error() -> None:
    assert LagSeconds(9.0, 2.0, "interpolated").certain_seconds == 7.0
    assert LagSeconds(1.0, 2.0, "interpolated").certain_seconds == 0.0


@settings(print_blob=True, deadline=None, max_examples=daily(120, 300))
@given(
    appended=st.lists(
        st.tuples(st.integers(0, 5_000), st.integers(1, 40)), min_size=1, max_size=300
    ),
    sample_ms=st.integers(1, 7_000),
    data=st.data(),
)
def test_the_truth_is_within_the_error_of_every_record_of_any_log(
    appended: list[tuple[int, int]], sample_ms: int, data: st.DataObject
) -> None:
    """Records come in batches ``(after ms, how many)``; the log is sampled every ``sample_ms``."""
    moments: list[int] = []
    now = 0
    for after, count in appended:
        now += after
        moments += [now] * count
    first_sample = data.draw(st.integers(0, now), label="first sample")
    history: EndOffsetHistory | None = None
    end = 0
    for at_ms in range(first_sample, now + 2 * sample_ms, sample_ms):
        while end < len(moments) and moments[end] <= at_ms:
            end += 1
        seen = EndOffsets(0, end, end, at_ms)
        if history is None:
            history = EndOffsetHistory(seen)
        history.add(seen)
    assert history is not None
    asked_ms = history.last_ms + data.draw(st.integers(0, 10_000), label="asked after")
    for position in {0, len(moments) - 1, data.draw(st.integers(0, len(moments) - 1))}:
        found = lag_seconds(position, len(moments) - position, history, asked_ms)
        assert found is not None
        truth = (asked_ms - moments[position]) / 1000
        if found.error_seconds is None:
            assert found.method == "at_least"
            assert found.seconds <= truth
            assert moments[position] <= history.first.at_ms
        else:
            assert found.method == "interpolated"
            assert abs(found.seconds - truth) <= found.error_seconds + 1e-9
            assert found.certain_seconds <= truth + 1e-9


@pytest.mark.parametrize("ago", [10, 60, 300, 900, 1_800])
def test_an_even_log_is_told_nearly_exactly_even_where_its_history_is_sparse(ago: int) -> None:
    history = samples(*((100 * second, second) for second in range(7_200)))
    found = age(100 * (7_199 - ago), history, 7_199)
    assert found is not None
    assert found.seconds == pytest.approx(ago, abs=0.02)
    assert found.error_seconds is not None
    assert found.error_seconds <= max(1, ago * 0.7)
