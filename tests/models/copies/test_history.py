"""What is remembered of a copy, and what counts as a move, as standing, as going back."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.copies.history import (
    FEWEST_POINTS,
    GENERATIONS_WATCHED,
    RATE_SPAN_MS,
    REPORTED,
    CopyHistory,
    CopyLosses,
    Observation,
    SetBack,
)
from caughtup.models.histories.offset_sums import POINTS_KEPT, EndOffsetSum, SumHistory, SumPoint
from caughtup.models.ids import CopyKey, TaskId

END = EndOffsetSum(100_000, 100_000)
NO_ENDS = SumHistory()


def observed(*positions: tuple[int, int], provenance: str = "measured") -> CopyHistory:
    """A copy seen at (second, offset sum), of a changelog that ends at 100,000."""
    history = CopyHistory()
    for second, offset_sum in positions:
        see(history, second, offset_sum, provenance)
    return history


def see(history: CopyHistory, second: int, offset_sum: int, provenance: str = "measured") -> bool:
    return history.observe(
        Observation(second * 1000, offset_sum, None, END, provenance), NO_ENDS, 0
    )


def test_an_older_observation_is_ignored_and_a_repeated_one_changes_nothing() -> None:
    history = observed((0, 0), (5, 500))
    assert not see(history, 3, 90_000)
    assert see(history, 5, 500)
    assert history.positions.points() == [SumPoint(0, 0, 0), SumPoint(5000, 500, 500)]
    assert (history.last_ms, history.moved_ms) == (5000, 5000)


def test_a_second_observation_of_one_moment_takes_the_place_of_the_first() -> None:
    history = observed((0, 0), (5, 500))
    assert see(history, 5, 400)
    assert history.positions.last == SumPoint(5000, 400, 400)
    assert history.set_back is None


def test_a_copy_that_went_back_begins_again_with_the_rhythm_it_had() -> None:
    history = observed((0, 0), (5, 500), (10, 1_000), (15, 1_500))
    assert history.interval_ms == 5_000
    assert see(history, 20, 0)
    assert history.set_back == SetBack(1_500, 0, 20_000)
    assert history.positions.points() == [SumPoint(20_000, 0, 0)]
    assert history.lags.points() == [SumPoint(20_000, 100_000, 100_000)]
    assert history.interval_ms == 5_000
    assert (history.moved_ms, history.stood_ms) == (None, 0)


def test_a_rebalance_that_counts_a_marker_less_than_a_report_is_no_set_back() -> None:
    history = observed((0, 90_000), (5, 99_998))
    assert see(history, 6, 99_996, REPORTED)
    assert history.set_back is None
    assert len(history.positions) == 3


def test_a_rebalance_that_shows_a_wiped_store_is_a_set_back() -> None:
    history = observed((0, 90_000), (5, 95_000))
    assert see(history, 6, 0, REPORTED)
    assert history.set_back == SetBack(95_000, 0, 6_000)


def lagging(history: CopyHistory, second: int, lag: int) -> None:
    """The copy reports a lag; the changelog's end is known up to 500 offsets."""
    end = EndOffsetSum(100_000, 100_500)
    history.observe(Observation(second * 1000, None, lag, end), NO_ENDS, 0)


def test_a_position_that_a_lag_tells_goes_back_when_less_than_half_is_left() -> None:
    history = CopyHistory()
    lagging(history, 0, 60_000)
    assert history.positions.last == SumPoint(0, 40_000, 40_500)
    lagging(history, 5, 80_400)
    assert history.set_back is None
    lagging(history, 10, 91_000)
    assert history.set_back == SetBack(19_600, 9_500, 10_000)


def test_many_small_steps_are_a_move_once_they_are_more_than_is_unknown() -> None:
    history = CopyHistory()
    for index in range(6):
        lagging(history, 5 * index, 60_000 - 100 * index)
    assert history.moved_ms is None
    lagging(history, 30, 59_400)
    assert (history.moved_ms, history.stood_ms) == (30_000, 0)
    lagging(history, 35, 59_300)
    assert history.moved_ms == 30_000


def test_a_moment_that_is_told_better_later_moves_nothing() -> None:
    history = CopyHistory()
    history.observe(Observation(0, None, 1_000, EndOffsetSum(2_000, 9_000)), NO_ENDS, 0)
    history.observe(Observation(0, None, 1_000, EndOffsetSum(2_000, 2_000)), NO_ENDS, 0)
    assert history.moved_ms is None
    history.observe(Observation(5_000, None, 1_000, EndOffsetSum(2_001, 2_001)), NO_ENDS, 0)
    assert history.moved_ms == 5_000


def test_the_known_ends_tell_the_lag_of_a_position_and_the_position_of_a_lag() -> None:
    ends = SumHistory()
    ends.add(0, 1_000, 1_000)
    ends.add(2_000, 3_000, 3_000)
    history = CopyHistory()
    history.observe(Observation(1_000, offset_sum=400), ends, 0)
    assert history.lags.last == SumPoint(1_000, 600, 2_600)
    history.observe(Observation(2_000, lag=500), ends, 0)
    assert history.positions.last == SumPoint(2_000, 2_500, 2_500)


def test_without_any_end_a_lag_has_no_position_and_a_position_no_lag() -> None:
    history = CopyHistory()
    history.observe(Observation(1_000, lag=500), NO_ENDS, 0)
    assert (len(history.positions), len(history.lags)) == (0, 1)
    history.observe(Observation(2_000, offset_sum=500), NO_ENDS, 0)
    assert (len(history.positions), len(history.lags)) == (1, 1)


def test_a_rhythm_is_known_after_two_moves_and_one_pause_does_not_make_it() -> None:
    history = observed((0, 1), (5, 2), (10, 3))
    assert (history.interval_ms, history.allowed_ms) == (None, None)
    see(history, 15, 4)
    assert history.interval_ms == 5_000
    see(history, 20, 4)
    see(history, 100, 5)
    assert history.interval_ms == 85_000
    for second in range(105, 125, 5):
        see(history, second, second)
    assert history.interval_ms == 5_000


def test_the_allowance_is_never_finer_than_the_observations_or_a_commit_interval() -> None:
    seldom = observed((0, 1), (600, 2), (1_200, 3), (1_800, 4))
    assert seldom.allowed_ms == 3 * 600_000
    often = observed((0, 1), (1, 2), (2, 3), (3, 4))
    assert often.allowed_ms == 30_000


def test_a_copy_stands_from_its_last_move_to_its_last_observation() -> None:
    history = observed((0, 500), (5, 600), (10, 600), (40, 600))
    assert history.stood_ms == 35_000


def test_a_copy_with_nothing_to_restore_does_not_stand() -> None:
    history = observed((0, 90_000), (5, 100_000), (600, 100_000))
    assert (history.stood_ms, history.idle_ms) == (0, 600_000)
    history.observe(Observation(605_000, 100_000, None, EndOffsetSum(100_500, 100_500)), NO_ENDS, 0)
    assert history.stood_ms == 5_000


def test_a_copy_that_could_not_move_is_not_slow_for_it() -> None:
    history = observed((0, 500), (5, 600), (300, 600))
    history.record_waited_until(300_000)
    assert history.stood_ms == 0
    see(history, 310, 600)
    assert history.stood_ms == 10_000
    history.record_waited_until(100_000)
    assert history.stood_ms == 10_000


def test_its_pace_is_taken_from_when_it_began_to_move() -> None:
    history = observed(*((second, 0) for second in range(0, 60, 5)))
    assert history.rate_points() == []
    for index in range(1, 4):
        see(history, 55 + 5 * index, 100 * index)
    assert [point.at_ms for point in history.rate_points()] == [55_000, 60_000, 65_000, 70_000]


def test_the_jump_to_where_a_changelog_begins_is_no_pace() -> None:
    history = observed((0, 0), *((5 * i, 50_000 + 100 * i) for i in range(1, 8)))
    points = history.rate_points()
    assert points[0].at_ms == 5_000
    steps = {before.low - after.low for before, after in pairwise(points)}
    assert steps == {100}


def test_its_pace_does_not_reach_back_across_a_stop() -> None:
    history = observed(*((5 * i, 100 * i) for i in range(10)))
    for second in range(50, 200, 5):
        see(history, second, 900)
    for index in range(1, 9):
        see(history, 195 + 5 * index, 900 + 100 * index)
    assert history.rate_points()[0].at_ms >= 195_000


def test_its_pace_is_that_of_the_last_minutes_or_of_the_last_few_points() -> None:
    often = observed(*((5 * i, 100 * i) for i in range(200)))
    assert often.rate_points()[0].at_ms >= 995_000 - RATE_SPAN_MS
    seldom = observed(*((600 * i, 100 * i) for i in range(8)), provenance=REPORTED)
    assert len(seldom.rate_points()) == FEWEST_POINTS


@settings(print_blob=True, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 10_000),
            st.integers(0, 100_000) | st.none(),
            st.integers(0, 100_000),
            st.sampled_from(["measured", "reported"]),
        ),
        max_size=120,
    )
)
def test_a_history_takes_whatever_comes_and_stays_small_and_in_order(
    seen: list[tuple[int, int | None, int, str]],
) -> None:
    history = CopyHistory()
    newest = None
    for at_ms, offset_sum, lag, provenance in seen:
        taken = history.observe(Observation(at_ms, offset_sum, lag, None, provenance), NO_ENDS, 0)
        assert taken == (newest is None or at_ms >= newest)
        newest = at_ms if taken else newest
        assert history.last_ms == newest
        assert history.stood_ms >= 0
        for kept in (history.positions, history.lags):
            times = [point.at_ms for point in kept.points()]
            assert times == sorted(set(times))
            assert len(times) <= POINTS_KEPT
        assert len(history.rate_points()) <= POINTS_KEPT


COPY, OTHER = CopyKey("p", TaskId(0, 0)), CopyKey("p", TaskId(0, 1))


def after(*held: bool) -> int:
    """Count the losses of a copy that was held in these generations, or not."""
    losses = CopyLosses()
    for is_held in held:
        losses.apply_generation({COPY, OTHER} if is_held else {OTHER})
    assert losses.of(OTHER) == 0
    return losses.of(COPY)


def test_a_copy_that_is_new_or_stays_or_goes_for_good_was_not_built_again() -> None:
    assert after(True, True, True) == after(False, True) == after(True, False, False) == 0


def test_a_copy_that_comes_back_was_built_again_each_time() -> None:
    assert after(True, False, True) == 1
    assert after(True, False, False, True, False, True) == 2


def test_a_loss_is_forgotten_after_so_many_generations() -> None:
    stays = [True] * (GENERATIONS_WATCHED - 1)
    assert after(True, False, True, *stays) == 1
    assert after(True, False, True, *stays, True) == 0


def test_a_copy_that_comes_back_after_long_is_a_new_one() -> None:
    away = [False] * (GENERATIONS_WATCHED - 1)
    assert after(True, *away, True) == 1
    assert after(True, *away, False, False, True) == 0


def test_a_store_that_started_over_was_built_again() -> None:
    losses = CopyLosses()
    losses.apply_generation({COPY})
    losses.record_rebuilt(COPY)
    losses.record_rebuilt(COPY)
    assert losses.of(COPY) == 2


@settings(print_blob=True, deadline=None)
@given(st.lists(st.booleans(), max_size=60))
def test_losses_are_counted_as_often_as_a_copy_comes_back_in_the_window(held: list[bool]) -> None:
    lost_at = None
    rebuilt = []
    for index, (before, now) in enumerate(zip([False, *held], held, strict=False)):
        if before and not now:
            lost_at = index
        if now and not before and lost_at is not None:
            if index - lost_at < GENERATIONS_WATCHED:
                rebuilt.append(index)
            lost_at = None
    assert after(*held) == sum(at > len(held) - 1 - GENERATIONS_WATCHED for at in rebuilt)
