"""Lag, pace and time to go of simulated copies whose truth is known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.copies.figures import CatchUpRate
from caughtup.models.copies.history import Observation
from caughtup.models.histories.trend import Eta
from tests.support.simulation.copies import LIMIT, MINUTE, SECOND, START_MS, SimulatedCopy


@settings(print_blob=True, deadline=None, max_examples=40)
@given(
    rate=st.integers(100, 20_000),
    share=st.floats(0, 0.8),
    report_ms=st.sampled_from([SECOND, 5 * SECOND, 30 * SECOND]),
    look_ms=st.sampled_from([SECOND, 5 * SECOND]),
)
def test_a_copy_arrives_when_its_figures_say(
    rate: int, share: float, report_ms: int, look_ms: int
) -> None:
    """``share``: how many offsets come for each that is restored."""
    copy = SimulatedCopy(
        end=LIMIT + rate * 400, rate=rate, growth=rate * share, report_ms=report_ms, look_ms=look_ms
    )
    copy.run(4 * report_ms + 700)
    figures = copy.figures()
    assert figures.eta is not None
    assert figures.growth is not None
    assert figures.rate is not None
    assert figures.pace == "own"
    assert figures.rate - figures.growth == pytest.approx(rate * (1 - share), rel=0.01, abs=2)
    assert figures.estimated_lag == pytest.approx(copy.lag, rel=0.01, abs=5)
    truth = copy.run_until_caught_up()
    # The simulation steps by a tenth of a second, and offsets are whole numbers.
    assert figures.eta.low - 0.3 <= truth <= figures.eta.high + 0.3
    assert figures.eta.seconds == pytest.approx(truth, rel=0.02, abs=0.3)


def about(seconds: float) -> Eta:
    """Return an approximation of so many seconds, as close as whole offsets allow."""
    nearly = pytest.approx(seconds, rel=0.002)
    return Eta(seconds, nearly, nearly)


def test_what_is_left_of_the_time_shrinks_between_two_reports() -> None:
    copy = SimulatedCopy(end=110_000, rate=1_000)
    copy.run(20 * SECOND)
    assert copy.figures().eta == about(80)
    copy.run(3 * SECOND)
    figures = copy.figures()
    assert figures.age_seconds == 3
    assert figures.eta == about(77)
    assert figures.lag is not None
    assert (figures.lag.high, figures.estimated_lag) == (90_000, 87_000)


def test_a_copy_at_its_limit_is_there() -> None:
    copy = SimulatedCopy(end=LIMIT)
    figures = copy.figures()
    assert figures.eta == Eta(0.0, 0.0, 0.0)
    assert figures.caught_up_since_ms == START_MS


def test_an_active_is_there_when_nothing_is_left() -> None:
    copy = SimulatedCopy(end=LIMIT, rate=1_000, limit=0)
    copy.run(8 * SECOND)
    assert copy.figures().caught_up_since_ms is None
    copy.run(2 * SECOND)
    assert copy.figures().caught_up_since_ms == START_MS + 10 * SECOND


def test_a_copy_that_does_not_gain_never_arrives() -> None:
    copy = SimulatedCopy(rate=500, growth=500)
    copy.run(MINUTE)
    figures = copy.figures()
    assert figures.eta is not None
    assert figures.eta.seconds == math.inf


def test_a_copy_reported_once_has_no_pace_of_its_own() -> None:
    copy = SimulatedCopy(rate=1_000, report_ms=None)
    copy.run(MINUTE)
    figures = copy.figures()
    assert (figures.closing, figures.rate, figures.pace, figures.eta) == (None, None, None, None)
    assert figures.estimated_lag is None
    assert figures.lag is not None
    assert figures.lag.high == 100_000


def given_rate(copy: SimulatedCopy, rate: float, error: float = 0, age_ms: int = 0) -> CatchUpRate:
    return CatchUpRate(rate, error, MINUTE, copy.now_ms - age_ms)


def test_with_a_rate_from_outside_a_copy_reported_once_has_a_time() -> None:
    copy = SimulatedCopy(end=110_000, rate=1_000, growth=200, report_ms=None)
    copy.run(MINUTE)
    figures = copy.figures(given_rate(copy, 1_000, error=50))
    assert (figures.pace, figures.rate) == ("given", 1_000)
    assert figures.growth == pytest.approx(200)
    assert figures.estimated_lag == pytest.approx(copy.lag, rel=0.001)
    truth = copy.run_until_caught_up()
    assert figures.eta is not None
    assert figures.eta.seconds == pytest.approx(truth, abs=0.2)
    assert figures.eta.low < truth < figures.eta.high
    assert figures.eta.high - figures.eta.low == pytest.approx(
        100_000 / 750 - 100_000 / 850, abs=0.1
    )


def test_a_rate_from_outside_goes_before_the_copys_own_while_it_is_fresh() -> None:
    copy = SimulatedCopy(rate=100)
    copy.run(5 * MINUTE)
    assert copy.figures(given_rate(copy, 777, age_ms=2 * MINUTE)).rate == 777
    old = copy.figures(given_rate(copy, 777, age_ms=2 * MINUTE + 1))
    assert (old.pace, old.rate) == ("own", pytest.approx(100))


def test_a_rate_from_before_the_copy_started_over_is_of_no_use() -> None:
    copy = SimulatedCopy(rate=1_000)
    copy.run(MINUTE)
    before = given_rate(copy, 777)
    copy.run(SECOND)
    copy.position = 0
    copy.run(MINUTE)
    assert copy.history.set_back is not None
    assert copy.figures(before).pace == "own"
    assert copy.figures(given_rate(copy, 777)).pace == "given"


def test_a_rate_taken_while_the_copy_had_nothing_to_restore_is_no_pace() -> None:
    """It went as fast as records came: that says nothing of how fast it can go."""
    copy = SimulatedCopy(end=50_000, position=50_000, rate=1_000, growth=100, limit=0)
    copy.run(5 * MINUTE)
    measured = given_rate(copy, 100)
    copy.end += 60_000
    copy.run(30 * SECOND)
    figures = copy.figures(measured)
    assert figures.pace == "own"


def test_without_end_offsets_a_lag_that_shrinks_still_tells_a_time() -> None:
    copy = SimulatedCopy(report_ms=None)
    copy.history = type(copy.history)()
    copy.ends.keep_last(0)
    for index in range(6):
        seen = Observation(START_MS + 5_000 * index, lag=110_000 - 5_000 * index)
        assert copy.history.observe(seen, copy.ends, LIMIT)
    copy.now = 25_000
    figures = copy.figures()
    assert (figures.rate, figures.growth, figures.pace) == (None, None, "own")
    assert figures.eta == about(75)
