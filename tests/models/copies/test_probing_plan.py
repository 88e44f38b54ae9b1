"""How long it takes to build the copies of a plan, by Kafka's rate cap and without it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.copies.probing import assess_probing, plan_seconds, seconds_one_after_another
from caughtup.models.copies.warmups import CopyAssessment
from caughtup.models.parameters import ApplicationParameters
from tests.support.groups.records import START_MS
from tests.support.simulation.probed import KAFKAS_DEFAULTS, SECOND, assess, scheduled, warmup


@pytest.mark.parametrize(
    ("copies", "hours"), [(90, 7.5), (96, 8.0), (380, 31.67), (9, 0.83), (0, 0.0), (1, 0.17)]
)
def test_the_rate_cap_at_kafkas_defaults(copies: int, hours: float) -> None:
    """Ten to eleven instances with 100 tasks: 90 to 96 copies, eight hours; nine would do."""
    assert plan_seconds(copies, KAFKAS_DEFAULTS) / 3600 == pytest.approx(hours, abs=0.01)


def test_the_rate_cap_follows_the_applications_configs() -> None:
    faster = ApplicationParameters(
        config={"max.warmup.replicas": 8, "probing.rebalance.interval.ms": 60_000}
    )
    assert plan_seconds(96, faster) == 12 * 60


def test_the_plan_counts_the_present_warm_ups_and_those_that_follow() -> None:
    probing = assess(
        warmup(1, eta=30, closing=1_000), warmup(2, eta=50, closing=1_000), to_build=(70_000,) * 3
    )
    assert probing.plan_seconds == 3 * 600
    # 30 + 60 + 60 in one place, 50 + 60 in the other.
    assert probing.plan_seconds_worthwhile == 150


def test_a_copy_that_is_nearly_there_already_takes_no_time_to_build() -> None:
    probing = assess(warmup(1, eta=30, closing=1_000), to_build=(5_000,))
    assert probing.plan_seconds_worthwhile == 30


def test_copies_that_got_there_tell_how_fast_the_next_ones_will_be() -> None:
    now_ms = START_MS + 100 * SECOND
    there = [warmup(1, "caught_up", eta=0, caught_up=90)]
    probing = assess_probing(
        scheduled(), there, KAFKAS_DEFAULTS, now_ms, (70_000,), paces=(500, 2_000, 1_000)
    )
    assert probing.plan_seconds_worthwhile == 60


def test_a_plan_with_a_warm_up_that_never_gets_there_never_ends() -> None:
    probing = assess(warmup(1, "chasing", eta=math.inf, closing=-5), to_build=(70_000,))
    assert probing.plan_seconds == 600
    assert probing.plan_seconds_worthwhile == math.inf


@pytest.mark.parametrize(
    "copies", [(), (warmup(1, "unknown"),), (warmup(1, "waiting"),), (warmup(1, eta=30),)]
)
def test_how_long_a_plan_takes_is_unknown_without_any_pace(
    copies: tuple[CopyAssessment, ...],
) -> None:
    assert assess(*copies, to_build=(70_000,)).plan_seconds_worthwhile is None


@settings(print_blob=True, deadline=None)
@given(
    st.lists(st.floats(0, 1e6), max_size=30),
    st.integers(1, 9),
)
def test_copies_take_as_long_as_their_places_allow(builds: list[float], at_once: int) -> None:
    took = seconds_one_after_another(builds, at_once)
    least = max([sum(builds) / at_once, *builds], default=0.0)
    assert least <= took + 1e-6
    assert took <= 2 * least + 1e-6
    assert seconds_one_after_another(builds, 1) == pytest.approx(sum(builds))
    assert seconds_one_after_another(builds, len(builds) + 1) == max(builds, default=0.0)
