"""Figures over time: bounded, no peak lost, unknown where unknown."""

from __future__ import annotations

import numpy as np
import pytest

from caughtup.models.recent.rings import STEP_MS, UNKNOWN, Series

BEGAN_MS = 1_800_000_000_000


def filled(values: list[float], step_ms: int = STEP_MS) -> Series:
    series = Series(("lag", "rate"))
    for number, value in enumerate(values):
        series.add(BEGAN_MS + number * step_ms, {"lag": value})
    return series


def test_of_late_every_sample_is_there_and_what_is_unknown_is_none() -> None:
    series = filled([1, UNKNOWN, 3])
    at_ms, columns = series.columns()
    assert at_ms == [BEGAN_MS, BEGAN_MS + STEP_MS, BEGAN_MS + 2 * STEP_MS]
    assert columns == {"lag": [1, None, 3], "rate": [None, None, None]}
    assert series.newest("lag", 2) == [None, 3]
    assert series.newest("lag", 9, each=2) == [1, 3]
    assert filled([1, 2, 3, 4, 5, 6, 7]).newest("lag", 2, each=3) == [4, 7]


def test_a_day_takes_no_more_than_six_hours_and_times_ascend() -> None:
    series = filled([float(number) for number in range(8_640)])
    at_ms, columns = series.columns()
    last_ms = BEGAN_MS + 8_639 * STEP_MS
    assert at_ms[-1] == last_ms
    assert 5.5 * 3_600_000 < last_ms - at_ms[0] <= 6 * 3_600_000
    assert all(np.diff(at_ms) > 0)
    assert len(at_ms) == len(columns["lag"]) <= 345
    assert columns["lag"][-180:] == [float(number) for number in range(8_460, 8_640)]


@pytest.mark.parametrize("peak_at", [0, 5, 100, 700])
def test_a_peak_of_one_sample_is_still_there_when_it_is_hours_old(peak_at: int) -> None:
    values = [1.0] * 1_000
    values[peak_at] = 9_999.0
    _, columns = filled(values).columns()
    assert max(value for value in columns["lag"] if value is not None) == 9_999


def test_a_clock_that_is_set_back_begins_anew() -> None:
    series = filled([1, 2, 3])
    series.add(BEGAN_MS - 60_000, {"lag": 7})
    assert series.columns() == ([BEGAN_MS - 60_000], {"lag": [7], "rate": [None]})
