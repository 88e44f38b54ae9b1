"""Rates of simulated groups whose rates are known, and what follows from them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.histories.end_offsets import EndOffsetHistory
from caughtup.models.lag.rates import (
    GroupRates,
    eta_seconds,
    produce_rate,
    records_lost,
    retention_used,
)
from caughtup.models.offsets import EndOffsets
from tests.support.simulation.group import HOUR, MINUTE, SECOND, SimulatedGroup, steadily, until


@settings(print_blob=True, deadline=None, max_examples=25)
@given(
    produce=st.integers(1, 500),
    consume=st.integers(1, 500),
    commit_ms=st.sampled_from([200, SECOND, 5 * SECOND, 30 * SECOND]),
    backlog=st.integers(0, 600),
)
def test_rates_velocity_and_eta_are_those_of_the_simulation(
    produce: int, consume: int, commit_ms: int, backlog: int
) -> None:
    group = SimulatedGroup(steadily(produce))
    group.run(backlog * SECOND)
    group.consume(consume, commit_ms)
    group.run(3 * MINUTE)
    figures = group.figures()
    rates = figures.rates
    assert rates is not None
    assert rates.span_seconds >= 3 * commit_ms / SECOND
    # A commit rounds down, and so does the log: an offset or two over the span.
    precision = 3 / rates.span_seconds
    assert rates.produce_rate == pytest.approx(produce, abs=precision)
    if group.position < group.produced(group.now) - produce:
        assert rates.consume_rate == pytest.approx(consume, abs=precision)
        if consume > produce + 1:
            # It goes on as it did, and is there when the figure says.
            assert figures.eta_seconds is not None
            gained = figures.eta_seconds * (consume - produce)
            assert gained == pytest.approx(figures.lag.lag, rel=precision)
        elif consume < produce:
            assert figures.eta_seconds == math.inf


def test_a_group_at_the_end_reads_what_comes_and_has_caught_up() -> None:
    group = SimulatedGroup(steadily(50))
    group.consume(1_000, 5 * SECOND)
    group.run(5 * MINUTE)
    figures = group.figures()
    assert figures.rates == GroupRates(50.0, 50.0, 60.0)
    assert figures.rates.velocity == 0
    assert figures.eta_seconds == 0.0


def test_a_group_that_stopped_has_a_rate_that_falls_to_0_and_never_catches_up() -> None:
    group = SimulatedGroup(steadily(50))
    group.consume(1_000, 5 * SECOND)
    group.run(5 * MINUTE)
    group.consume(0, None)
    seen = []
    for _ in range(8):
        group.run(10 * SECOND)
        rates = group.figures().rates
        assert rates is not None
        seen.append(rates.consume_rate)
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] == 0
    assert group.figures().eta_seconds == math.inf


def test_an_idle_partition_has_rates_of_0() -> None:
    group = SimulatedGroup(until(MINUTE, steadily(50)))
    group.consume(1_000, 5 * SECOND)
    group.run(HOUR)
    assert group.figures().rates == GroupRates(0.0, 0.0, 60.0)


def test_a_group_that_goes_on_after_an_outage_is_not_measured_across_it() -> None:
    group = SimulatedGroup(steadily(100))
    group.consume(1_000, 5 * SECOND)
    group.run(5 * MINUTE)
    group.consume(0, None)
    group.run(10 * MINUTE)
    group.consume(500, 5 * SECOND)
    group.run(20 * SECOND)
    figures = group.figures()
    assert figures.rates is not None
    assert figures.rates.consume_rate == pytest.approx(500)
    assert figures.eta_seconds == pytest.approx(figures.lag.lag / 400)


def test_a_group_that_waited_at_the_end_was_not_on_its_way_to_its_next_commit() -> None:
    """Ten minutes of silence, then records again: the span reaches back into the silence."""
    before = until(5 * MINUTE, steadily(100))
    group = SimulatedGroup(lambda now: before(now) + max(0, now - 15 * MINUTE) // 10)
    group.consume(1_000, 5 * SECOND)
    group.run(15 * MINUTE + 20 * SECOND)
    rates = group.figures().rates
    assert rates is not None
    assert rates.span_seconds == 60
    assert rates.consume_rate == pytest.approx(2_000 / 60)
    assert rates.velocity == pytest.approx(0)


def test_a_consumer_that_commits_every_ten_minutes_is_measured_over_several_commits() -> None:
    group = SimulatedGroup(steadily(10), sample_ms=10 * SECOND)
    group.consume(1_000, 10 * MINUTE)
    group.run(90 * MINUTE)
    rates = group.figures().rates
    assert rates is not None
    assert rates.span_seconds == 2_400
    # Looks that old are minutes apart, but the log grew evenly.
    assert rates.consume_rate == pytest.approx(10, rel=0.01)
    assert rates.produce_rate == pytest.approx(10, rel=0.01)


def test_one_commit_tells_no_rate_and_no_eta() -> None:
    group = SimulatedGroup(steadily(10))
    group.run(MINUTE)
    group.commit(5)
    group.run(5 * SECOND)
    assert (group.figures().rates, group.figures().eta_seconds) == (None, None)


def test_a_span_that_is_shorter_than_the_groups_interval_tells_no_rate() -> None:
    """The end offsets are sampled since three seconds only, and the group commits every ten."""
    group = SimulatedGroup(steadily(10), sample_ms=HOUR)
    group.consume(5, 10 * SECOND)
    group.run(57 * SECOND)
    group.sample_ms = SECOND
    group.run(3 * SECOND)
    assert group.figures().rates is None
    group.run(20 * SECOND)
    assert group.figures().rates is not None


@pytest.mark.parametrize(
    ("lag", "rates", "eta"),
    [
        pytest.param(0, None, 0.0, id="caught up"),
        pytest.param(10, None, None, id="no rates"),
        pytest.param(100, GroupRates(30.0, 10.0, 60.0), 5.0, id="gains 20 a second"),
        pytest.param(100, GroupRates(10.0, 10.0, 60.0), math.inf, id="keeps its distance"),
        pytest.param(100, GroupRates(10.0, 30.0, 60.0), math.inf, id="falls behind"),
    ],
)
def test_the_eta_is_the_lag_over_the_gain(
    lag: int, rates: GroupRates | None, eta: float | None
) -> None:
    assert eta_seconds(lag, rates) == eta


def test_velocity_is_the_change_of_the_lag_and_growth_that_over_the_span() -> None:
    rates = GroupRates(consume_rate=30.0, produce_rate=10.0, span_seconds=60.0)
    assert (rates.velocity, rates.growth) == (-20.0, -1_200.0)


@pytest.mark.parametrize(
    ("committed", "used", "lost"),
    [
        pytest.param(200, 0.0, 0, id="at the end"),
        pytest.param(250, 0.0, 0, id="newer than the sample"),
        pytest.param(150, 0.5, 0, id="half of the log behind it"),
        pytest.param(110, 0.9, 0, id="nearly at the start"),
        pytest.param(100, 1.0, 0, id="at the start, nothing lost yet"),
        pytest.param(50, 1.5, 50, id="fifty offsets were deleted unread"),
    ],
)
def test_retention_used_is_the_share_of_the_log_behind_the_commit(
    committed: int, used: float, lost: int
) -> None:
    ends = EndOffsets(start_offset=100, last_stable_offset=200, end_offset=200, as_of_ms=0)
    assert (retention_used(committed, ends), records_lost(committed, ends)) == (used, lost)


def test_an_empty_log_has_used_none_of_its_retention_or_all() -> None:
    empty = EndOffsets(100, 100, 100, 0)
    assert [retention_used(committed, empty) for committed in (99, 100)] == [1.0, 0.0]


@settings(print_blob=True, deadline=None)
@given(st.integers(0, 1_000), st.integers(0, 1_000), st.integers(0, 2_000))
def test_beyond_1_and_only_there_records_are_lost(start: int, size: int, committed: int) -> None:
    ends = EndOffsets(start, start + size, start + size, 0)
    used = retention_used(committed, ends)
    assert used >= 0
    if size:
        assert (used > 1) == (records_lost(committed, ends) > 0)


def test_the_rate_of_producers_is_that_of_the_last_minute_and_not_of_a_moment() -> None:
    history = EndOffsetHistory(EndOffsets(0, 100, 100, 0))
    assert produce_rate(history) is None
    history.add(EndOffsets(0, 400, 400, 3_000))
    assert produce_rate(history) is None
    history.add(EndOffsets(0, 1_100, 1_100, 10_000))
    assert produce_rate(history) == 100.0
    for second in range(15, 90, 5):
        history.add(EndOffsets(0, 1_100, 1_100, second * 1_000))
    assert produce_rate(history) == 0.0
