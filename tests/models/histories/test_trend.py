"""Trends and times to go, against simulated ways whose truth is known."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.histories.offset_sums import SumPoint
from caughtup.models.histories.trend import Eta, Trend, median, time_to_go, trend


def line(per_second: float, count: int, step_ms: int = 5_000) -> list[SumPoint]:
    """Points on a line, from a million at 0 ms."""
    sums = [1_000_000 + round(per_second * step_ms * i / 1000) for i in range(count)]
    return [SumPoint(i * step_ms, s, s) for i, s in enumerate(sums)]


@settings(print_blob=True, deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
def test_a_median_is_pythons(values: list[float]) -> None:
    assert median(values) == statistics.median(values)


def test_fewer_than_two_points_have_no_trend() -> None:
    assert trend([]) is None
    assert trend(line(100, 1)) is None


def test_a_steady_sum_has_its_slope_and_no_error() -> None:
    taken = trend(line(-400, 6))
    assert taken == Trend(-400.0, 0.0, 0.0, 25.0, 5)
    assert taken.error == 0


def test_two_points_tell_a_slope_and_nothing_of_its_error() -> None:
    taken = trend(line(200, 2))
    assert taken is not None
    assert taken.per_second == 200
    assert taken.error == math.inf
    assert time_to_go(SumPoint(0, 1_000, 1_000), taken) == Eta(5.0, 0.0, math.inf)


@pytest.mark.parametrize("at", [1, 11])
def test_a_jump_in_the_first_or_last_step_does_not_turn_a_trend(at: int) -> None:
    taken = trend(jumping(at))
    assert taken is not None
    assert taken.per_second == 100


@pytest.mark.parametrize("at", range(1, 12))
def test_a_jump_anywhere_widens_the_error_by_more_than_it_turns_the_trend(at: int) -> None:
    taken = trend(jumping(at))
    assert taken is not None
    assert taken.error > abs(taken.per_second - 100)


def jumping(at: int) -> list[SumPoint]:
    """A sum that grows by 100 a second, and at one point by 9,000 besides."""
    return [
        point if index < at else SumPoint(point.at_ms, point.low + 9_000, point.high + 9_000)
        for index, point in enumerate(line(100, 12))
    ]


@pytest.mark.parametrize("every", [2, 3, 5])
def test_a_sum_that_moves_in_batches_has_the_pace_of_its_batches(every: int) -> None:
    steps = [SumPoint(i * 5_000, s, s) for i in range(16) for s in [i // every * every * 500]]
    taken = trend(steps)
    assert taken is not None
    assert taken.per_second == pytest.approx(100, rel=0.25)
    assert abs(taken.per_second - 100) <= taken.error


@settings(print_blob=True, deadline=None)
@given(
    per_second=st.integers(-10_000, 10_000),
    widths=st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 5_000)), min_size=2),
    step_ms=st.integers(100, 600_000),
)
def test_the_truth_lies_within_the_slack_of_points_that_are_only_bounded(
    per_second: int, widths: list[tuple[int, int]], step_ms: int
) -> None:
    """``widths``: how far each bound lies below and above the truth."""
    points = [
        SumPoint(i * step_ms, truth - below, truth + above)
        for i, (below, above) in enumerate(widths)
        for truth in [per_second * step_ms * i // 1000]
    ]
    taken = trend(points)
    assert taken is not None
    rounding = 2 / taken.span_seconds
    assert abs(taken.per_second - per_second) <= taken.slack + rounding


def test_a_steady_distance_is_gone_when_the_figure_says() -> None:
    closing = trend(line(500, 10))
    assert closing is not None
    # A span of 45 s of whole offsets.
    grain = pytest.approx(4 / 45, rel=0.01)
    for width in (0, 1_000):
        eta = time_to_go(SumPoint(0, 10_000 - width, 10_000 + width), closing)
        assert eta.seconds == 20
        assert (10_000 - width) / eta.low - 500 == grain
        assert 500 - (10_000 + width) / eta.high == grain
    assert time_to_go(SumPoint(0, 10_000, 10_000), -closing) == Eta(math.inf, math.inf, math.inf)
    assert time_to_go(SumPoint(0, -5, 0), -closing) == Eta(0.0, 0.0, 0.0)


def test_a_distance_that_may_be_gone_already_has_a_time_from_0_on() -> None:
    closing = trend(line(500, 10))
    assert closing is not None
    eta = time_to_go(SumPoint(0, -1_000, 3_000), closing)
    assert eta == Eta(2.0, 0.0, pytest.approx(6, rel=0.001))


def test_what_is_left_of_a_time_is_never_less_than_nothing() -> None:
    assert Eta(20.0, 15.0, math.inf).after(18) == Eta(2.0, 0.0, math.inf)
    assert Eta(20.0, 15.0, 30.0).after(60) == Eta(0.0, 0.0, 0.0)


@settings(print_blob=True, deadline=None)
@given(
    distance=st.integers(-1_000, 10**12),
    width=st.integers(0, 10**6),
    per_second=st.floats(-1e6, 1e6),
    variance=st.floats(0, 1e9),
    slack=st.floats(0, 1e4),
    span=st.floats(0.1, 1e5),
    steps=st.integers(2, 25),
)
def test_a_time_lies_between_its_bounds_whatever_it_is_taken_from(
    distance: int,
    width: int,
    per_second: float,
    variance: float,
    slack: float,
    span: float,
    steps: int,
) -> None:
    closing = Trend(per_second, variance, slack, span, steps)
    eta = time_to_go(SumPoint(0, distance, distance + width), closing)
    assert 0 <= eta.low <= eta.seconds <= eta.high
    if eta.high < math.inf:
        # What is certain to arrive gains for certain.
        assert per_second - closing.error > 0 or distance + width <= 0
    wider = time_to_go(SumPoint(0, distance, distance + width), closing._replace(slack=slack + 10))
    assert wider.low <= eta.low
    assert wider.high >= eta.high


#: Ways of making 1,000 offsets a second, in offsets of so many seconds.
PACES: dict[str, Callable[[random.Random, float], float]] = {
    "steady": lambda _, seconds: 1_000 * seconds,
    "uneven": lambda dice, seconds: dice.gammavariate(5 * seconds, 200),
    "very uneven": lambda dice, seconds: dice.gammavariate(seconds, 1_000),
}


@pytest.mark.parametrize("points", [4, 6, 12, 20])
@pytest.mark.parametrize("growth", [0, 300])
@pytest.mark.parametrize("pace", PACES)
def test_a_simulated_copy_arrives_within_the_bounds_in_more_than_90_of_100_runs(
    pace: str, growth: int, points: int
) -> None:
    within = 0
    for seed in range(200):
        dice = random.Random(f"{pace} {growth} {seed}")

        def step(lag: float, seconds: float, dice: random.Random = dice) -> float:
            come = dice.gauss(growth * seconds, math.sqrt(growth * seconds))
            return lag + come - PACES[pace](dice, seconds)

        lag, seen = 300_000.0, []
        for index in range(points):
            lag = step(lag, 5) if index else lag
            seen.append(SumPoint(index * 5_000, round(lag), round(lag)))
        closing = trend(seen)
        assert closing is not None
        eta = time_to_go(seen[-1], -closing)
        seconds = 0.0
        while lag > 0:
            lag, seconds = step(lag, 1.0), seconds + 1.0
        within += eta.low - 1 <= seconds <= eta.high + 1
    assert within >= 200 * 0.9
