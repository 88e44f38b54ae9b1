"""Verdicts on simulated copies whose truth is known: the healthy, the sick, and the steady."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.simulation.copies import LIMIT, MINUTE, SECOND, SimulatedCopy, copy_context
from tests.support.sizes import daily


@settings(print_blob=True, deadline=None, max_examples=40)
@given(
    rate=st.integers(0, 3_000),
    growth=st.integers(0, 3_000),
    minutes=st.integers(0, 12),
    report_ms=st.sampled_from([SECOND, 5 * SECOND, 30 * SECOND, MINUTE, None]),
    sample_ms=st.sampled_from([SECOND, 1_300, 7 * SECOND]),
    by_lag=st.booleans(),
)
def test_no_steady_copy_is_ever_misjudged(
    rate: int, growth: int, minutes: int, report_ms: int | None, sample_ms: int, *, by_lag: bool
) -> None:
    copy = SimulatedCopy(
        end=500_000,
        rate=rate,
        growth=growth,
        report_ms=report_ms,
        sample_ms=sample_ms,
        by_lag=by_lag,
    )
    copy.run(minutes * MINUTE + 7 * SECOND)
    verdict, reason = copy.verdict()
    if verdict == "warming":
        assert rate > growth
    elif verdict == "chasing":
        assert 0 < rate <= growth
    elif verdict == "stalled":
        # From lags alone a crawl can't be told from standing while much more comes.
        assert rate == 0 or (by_lag and rate < growth / 10)
    elif verdict == "caught_up":
        assert copy.lag <= LIMIT + rate
    else:
        assert verdict == "unknown", reason
        # Offsets are whole: of a gain of one in a minute nobody can be sure.
        told_enough = minutes >= 8 and report_ms is not None and abs(rate - growth) > 1
        told_enough &= not by_lag or rate > growth / 10 + 10
        assert not told_enough or rate == 0, reason


@pytest.mark.parametrize("by_lag", [True, False])
@pytest.mark.parametrize("is_standby", [True, False])
@pytest.mark.parametrize("report_ms", [SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND])
def test_an_uneven_but_healthy_copy_is_hardly_ever_accused(
    is_standby: bool, report_ms: int, *, by_lag: bool
) -> None:
    """Its pace varies, it pauses for up to 20 s, and bursts of up to 30 s nearly exceed it."""
    verdicts: Counter[str] = Counter()
    for seed in range(daily(3, 8)):
        dice = random.Random(f"{is_standby} {report_ms} {seed}")
        pace = 20_000 if is_standby else dice.uniform(1_000, 8_000)
        copy = SimulatedCopy(
            end=50_000 if is_standby else 1_000_000,
            position=50_000 if is_standby else 0,
            report_ms=report_ms,
            sample_ms=1_300,
            limit=dice.choice([0, 100, LIMIT]),
            by_lag=by_lag,
        )
        pause = burst = 0
        for _ in range(600):
            pause = max(pause - 1, dice.randint(1, 20) if dice.random() < 1 / 120 else 0)
            burst = max(burst - 1, dice.randint(1, 30) if dice.random() < 1 / 200 else 0)
            copy.rate = 0 if pause > 0 else pace * dice.lognormvariate(0, 0.5)
            copy.growth = 0.7 * pace if burst > 0 else dice.choice([0, 50, 200])
            copy.run(SECOND)
            verdicts[copy.verdict(copy_context(is_warmup=False))[0]] += 1
    accused = verdicts["stalled"] + verdicts["chasing"] + verdicts["stranded"]
    assert accused <= sum(verdicts.values()) / 200, verdicts
    assert verdicts["caught_up"] > sum(verdicts.values()) / 3, verdicts


@pytest.mark.parametrize("report_ms", [SECOND, 5 * SECOND, 10 * SECOND])
@pytest.mark.parametrize(("rate", "expected"), [(0, "stalled"), (500, "chasing")])
@pytest.mark.parametrize("by_lag", [True, False])
def test_a_copy_that_breaks_down_is_accused_within_two_minutes(
    rate: float, expected: str, report_ms: int, *, by_lag: bool
) -> None:
    copy = SimulatedCopy(
        end=1_000_000, rate=3_000, growth=600, report_ms=report_ms, sample_ms=1_300, by_lag=by_lag
    )
    copy.run(2 * MINUTE)
    assert copy.verdict()[0] == "warming"
    copy.rate = rate
    copy.run(2 * MINUTE)
    assert copy.verdict()[0] == expected
