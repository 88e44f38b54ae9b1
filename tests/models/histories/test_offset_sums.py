"""Bounds of an offset sum over time."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.histories.offset_sums import (
    HORIZON_MS,
    POINTS_KEPT,
    EndOffsetSum,
    SumHistory,
    SumPoint,
)


def history(*points: tuple[int, int, int]) -> SumHistory:
    kept = SumHistory()
    for point in points:
        kept.add(*point)
    return kept


def test_an_older_point_changes_nothing_and_one_of_the_same_moment_takes_its_place() -> None:
    kept = history((10, 1, 2), (20, 5, 6))
    assert not kept.add(15, 100, 100)
    assert kept.add(20, 7, 8)
    assert kept.points() == [SumPoint(10, 1, 2), SumPoint(20, 7, 8)]
    assert kept.points(since_ms=11) == [SumPoint(20, 7, 8)]


def test_an_empty_history_knows_nothing() -> None:
    kept = SumHistory()
    assert (kept.last, kept.points(), kept.spacing_ms, len(kept)) == (None, [], None, 0)
    assert kept.around(5) is None


def test_a_moment_between_two_points_is_bounded_by_them() -> None:
    kept = history((10, 100, 110), (20, 200, 210))
    assert kept.around(9) is None
    assert kept.around(10) == EndOffsetSum(100, 110)
    assert kept.around(15) == EndOffsetSum(100, 210)
    assert kept.around(20) == EndOffsetSum(200, 210)


def test_after_the_newest_point_a_sum_has_grown_at_most_twice_as_fast_as_ever() -> None:
    kept = history((0, 100, 100), (10, 200, 200), (20, 230, 230))
    assert kept.around(25) == EndOffsetSum(230, 330)
    assert history((10, 100, 110)).around(99) == EndOffsetSum(100, 110)


def test_the_usual_time_between_two_points_is_not_turned_by_one_gap() -> None:
    kept = history(*((at_ms, 0, 0) for at_ms in (0, 5, 10, 500, 505, 510)))
    assert kept.spacing_ms == 5


def test_only_the_newest_points_are_kept_when_no_more_are_wanted() -> None:
    kept = history((10, 1, 1), (20, 2, 2), (30, 3, 3))
    kept.keep_last(5)
    assert len(kept) == 3
    kept.keep_last(2)
    assert kept.points() == [SumPoint(20, 2, 2), SumPoint(30, 3, 3)]
    kept.keep_last(0)
    assert kept.last is None
    assert kept.add(5, 2, 2)


@settings(print_blob=True, deadline=None)
@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=200))
def test_a_history_stays_small_and_its_bounds_of_a_growing_sum_stay_true(gaps: list[int]) -> None:
    kept = SumHistory()
    truth: dict[int, int] = {}
    at_ms = total = 0
    for gap in gaps:
        at_ms, total = at_ms + gap, total + gap % 7
        truth[at_ms] = total
        assert kept.add(at_ms, total, total)
        assert len(kept) <= POINTS_KEPT
        assert kept.last == SumPoint(at_ms, total, total)
    for moment, was in truth.items():
        bound = kept.around(moment)
        if bound is None:
            assert at_ms - moment > HORIZON_MS or moment < kept.points()[0].at_ms
        else:
            assert bound.low <= was <= bound.high


def test_what_is_later_than_a_moment_can_be_forgotten() -> None:
    kept = history((10, 1, 2), (20, 5, 6), (30, 7, 8))
    kept.forget_after(30)
    assert len(kept) == 3
    kept.forget_after(19)
    assert kept.points() == [SumPoint(10, 1, 2)]
    assert kept.add(12, 3, 4)
    kept.forget_after(0)
    assert kept.last is None
    kept.forget_after(0)
