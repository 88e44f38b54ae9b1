"""Thinning: how many points stay, and how well those that stay cover the past."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.histories.thinning import kept_points, kept_points_of_each

HOUR_MS = 3_600_000


@settings(print_blob=True, deadline=None)
@given(
    st.lists(st.integers(1, 10**9), min_size=1, max_size=80),
    st.integers(1, 20),
    st.integers(1, 20),
    st.integers(1, 10**10),
)
def test_the_newest_stay_the_rest_is_bounded_and_nothing_is_older_than_the_horizon(
    gaps: list[int], dense: int, sparse: int, horizon_ms: int
) -> None:
    times = [sum(gaps[: index + 1]) for index in range(len(gaps))]
    kept = kept_points(times, dense, sparse, horizon_ms)
    within = [i for i, at_ms in enumerate(times) if at_ms >= times[-1] - horizon_ms]
    assert kept == sorted(set(kept))
    assert set(kept) <= set(within)
    assert kept[-1] == len(times) - 1
    assert kept[-dense:] == within[-dense:]
    assert len(kept) <= dense + sparse


def test_a_clock_that_thins_as_it_runs_covers_hours_to_a_share_of_their_age() -> None:
    """A sample a second for six hours, in a history of 24 points at most."""
    times: list[int] = []
    for second in range(6 * 3600):
        times.append(second * 1000)
        if len(times) > 24:
            times = [times[index] for index in kept_points(times, 6, 14, 2 * HOUR_MS)]
    newest = times[-1]
    ages = [(newest - at_ms) / 1000 for at_ms in reversed(times)]
    assert ages[:6] == [0, 1, 2, 3, 4, 5]
    assert 1800 <= ages[-1] <= 7200 + 1800
    for newer, older in pairwise(ages[5:]):
        assert older <= 2.5 * newer


def test_points_that_are_all_dense_stay() -> None:
    assert kept_points([5], 1, 1, 1) == [0]
    assert kept_points([1, 2, 3], 3, 1, 100) == [0, 1, 2]


def test_the_oldest_point_stays_until_it_is_beyond_the_horizon() -> None:
    times = [0, *range(1_000, 1_040)]
    assert kept_points(times, 4, 2, 1_039)[0] == 0
    assert kept_points(times, 4, 2, 1_038)[0] == 1


gaps_of_several = st.integers(1, 40).flatmap(
    lambda count: st.lists(
        st.lists(
            st.sampled_from([1, 2, 1_000, 30_000, HOUR_MS, 6 * HOUR_MS]) | st.integers(1, 10**9),
            min_size=count,
            max_size=count,
        ),
        min_size=1,
        max_size=9,
    )
)


@settings(print_blob=True, deadline=None)
@given(gaps_of_several, st.sampled_from([(4, 8, 6 * HOUR_MS), (1, 1, 1_000), (3, 20, 10**10)]))
def test_several_at_once_keep_what_each_would(
    gaps: list[list[int]], kept_at_most: tuple[int, int, int]
) -> None:
    times = np.cumsum(np.array(gaps, np.int64), axis=1)
    kept = kept_points_of_each(times, *kept_at_most)
    assert [np.flatnonzero(row).tolist() for row in kept] == [
        kept_points(row, *kept_at_most) for row in times.tolist()
    ]
