"""Rates from outside: which window counts, and for how long the stream is believed to be up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.copies.catch_up_rates import (
    FEWEST_SAMPLES,
    REPEATED_MS,
    TRIGGERS_MISSED,
    CatchUpRates,
    WindowRate,
    choose_rate,
    window_rate,
)
from caughtup.models.copies.figures import CatchUpRate
from caughtup.models.ids import CopyKey, TaskId
from caughtup.models.records.catch_up_rates import RateWindowRecord
from tests.support.groups.records import GROUP, START_MS

COPY = CopyKey("p", TaskId(0, 1))
UNKNOWN = WindowRate(None, None, 2)
RATE = CatchUpRate(5.0, 1.0, 60_000, START_MS)


def window(seconds: int, position: WindowRate) -> RateWindowRecord:
    return RateWindowRecord(seconds, *position)


@given(st.integers(FEWEST_SAMPLES, 20), st.integers(-1_000, 1_000), st.integers(30, 60))
def test_a_steady_movement_has_its_rate_and_no_spread(
    samples: int, per_second: int, span: int
) -> None:
    times = [START_MS + 1_000 * span * index // (samples - 1) for index in range(samples)]
    points = [(at_ms, per_second * (at_ms - START_MS)) for at_ms in times]
    assert window_rate(points, 60) == WindowRate(1_000.0 * per_second, 0.0, samples)


def test_too_few_samples_or_too_short_a_time_give_no_rate() -> None:
    points = [(START_MS + 10_000 * index, index) for index in range(FEWEST_SAMPLES - 1)]
    assert window_rate(points, 60) == WindowRate(None, None, FEWEST_SAMPLES - 1)
    points = [(START_MS + 7_499 * index, index) for index in range(FEWEST_SAMPLES)]
    assert window_rate(points, 60) == WindowRate(None, None, FEWEST_SAMPLES)
    assert window_rate([], 60) == WindowRate(None, None, 0)


def test_the_shortest_window_that_has_a_rate_counts() -> None:
    long, middle = window(900, WindowRate(3.0, 0.5, 20)), window(300, WindowRate(4.0, 0.7, 9))
    windows = [long, window(60, UNKNOWN), middle]
    assert choose_rate(START_MS, windows) == CatchUpRate(4.0, 0.7, 300_000, START_MS)
    assert choose_rate(START_MS, windows[1:2]) is None


def test_rates_are_there_until_the_stream_is_silent_for_a_minute_and_three_triggers() -> None:
    rates = CatchUpRates()
    rates.apply(GROUP, COPY, RATE)
    assert rates.live(START_MS) is None
    assert rates.of(GROUP, START_MS) == {}
    rates.record_written(START_MS, 10_000, START_MS)
    last_ms = START_MS + REPEATED_MS + TRIGGERS_MISSED * 10_000
    assert rates.live(last_ms) is True
    assert rates.of(GROUP, last_ms) == {COPY: RATE}
    assert rates.live(last_ms + 1) is False
    assert rates.of(GROUP, last_ms + 1) == {}
    rates.record_written(START_MS - 1, 3_600_000, START_MS)  # an older record says nothing of now
    assert rates.live(last_ms + 1) is False


def test_a_rate_that_is_withdrawn_is_gone_and_others_stay() -> None:
    rates = CatchUpRates()
    rates.record_written(START_MS, 0, START_MS)
    other = CopyKey("q", TaskId(0, 1))
    rates.apply(GROUP, COPY, None)
    for copy in (COPY, other):
        rates.apply(GROUP, copy, RATE)
    rates.apply(GROUP, COPY, None)
    assert rates.of(GROUP, START_MS) == {other: RATE}
    rates.apply(GROUP, other, None)
    assert rates.of(GROUP, START_MS) == {}


@pytest.mark.parametrize("group", ["nobody", GROUP])
def test_a_group_of_which_nobody_told_has_no_rates(group: str) -> None:
    rates = CatchUpRates()
    rates.record_written(START_MS, 0, START_MS)
    assert rates.of(group, START_MS) == {}


def test_a_stream_that_wrote_by_a_clock_that_was_set_back_counts_by_what_it_writes_now() -> None:
    rates = CatchUpRates()
    rates.record_written(START_MS + 3_600_000, 0, START_MS + 3_600_000)
    rates.record_written(START_MS, 0, START_MS)
    assert rates.newest_ms == START_MS
    assert rates.live(START_MS + REPEATED_MS + 1) is False


def test_beyond_the_most_no_copy_is_new_until_a_group_is_forgotten() -> None:
    rates = CatchUpRates(most_copies=2)
    for group in ("a", "b"):
        assert rates.apply(group, COPY, RATE)
    assert not rates.apply("c", COPY, RATE)
    assert rates.apply("a", COPY, RATE)
    assert rates.apply("c", COPY, None)
    rates.forget("a")
    rates.forget("never there")
    assert rates.apply("c", COPY, RATE)
    assert not rates.apply("a", COPY, RATE)
    assert rates.groups() == {"b", "c"}
