"""A group's commits on one partition: what is kept of them, and what that still tells."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.histories.commits import ENOUGH_WAITS, STEPS_KEPT, CommitHistory


def history(*commits: tuple[int, int]) -> CommitHistory:
    """A history of commits: (offset, second)."""
    first, *rest = commits
    made = CommitHistory(first[0], first[1] * 1_000)
    for offset, second in rest:
        made.add(offset, second * 1_000)
    return made


def test_a_single_commit_tells_an_offset_and_a_time_and_no_rhythm() -> None:
    made = history((5, 10))
    assert (made.committed, made.commit_timestamp_ms, made.step_ms) == (5, 10_000, 10_000)
    assert made.interval_ms is None
    assert (made.position_at(9_999), made.position_at(10_000)) == (None, 5)


def test_a_repeated_commit_is_no_step() -> None:
    made = history((5, 10), (5, 20), (5, 30))
    assert (made.commit_timestamp_ms, made.step_ms, len(made)) == (30_000, 10_000, 1)


def test_positions_between_steps_are_interpolated_and_stay_after_the_last() -> None:
    made = history((0, 0), (100, 10), (400, 20))
    assert [made.position_at(ms) for ms in (0, 5_000, 10_000, 15_000, 20_000, 99_000)] == [
        *(0, 50, 100, 250, 400, 400)
    ]


def test_the_offset_committed_last_at_a_moment_is_that_of_the_step_before_it() -> None:
    made = history((0, 0), (100, 10), (400, 20))
    moments = (-1, 0, 9_999, 10_000, 20_000, 99_000)
    assert [made.committed_at(ms) for ms in moments] == [None, 0, 0, 100, 400, 400]


def test_the_first_commit_after_a_time_is_a_step_or_the_last_one() -> None:
    history = CommitHistory(10, 1_000)
    for number in range(1, 4):
        history.add(10 + number, 1_000 + 100 * number)
    history.add(13, 1_350)  # it repeats the last one
    assert [history.first_after(at_ms) for at_ms in (0, 1_000, 1_150, 1_300, 1_350)] == [
        1_000,
        1_100,
        1_200,
        1_350,
        None,
    ]


def test_the_interval_is_the_second_longest_so_that_one_outage_makes_no_rhythm() -> None:
    steps = [(0, 0), (1, 5), (2, 11), (3, 3_611), (4, 3_616), (5, 3_620)]
    assert history(*steps).interval_ms == 6_000


def test_the_interval_is_the_longest_of_few_and_unknown_of_fewer_than_two() -> None:
    steps = [(0, 0), (1, 5), (2, 7), (3, 14), (4, 17), (5, 18)]
    assert [history(*steps[:count]).interval_ms for count in range(1, 7)] == [
        *(None, None, 5_000, 7_000, 7_000, 5_000)
    ]


def test_commits_that_repeat_an_offset_show_the_rhythm_too() -> None:
    """It commits every five seconds; each time a record comes, that is a second before."""
    made = CommitHistory(0, 0)
    for second in range(5, 3_600, 5):
        made.add(second // 600, second * 1_000, unread_since_ms=second * 1_000 - 1_000)
    assert made.interval_ms == 5_000


def test_bursts_with_pauses_have_the_rhythm_of_their_pauses_however_long_the_bursts() -> None:
    made = CommitHistory(0, 0)
    for burst in range(4):
        for step in range(1, 40):
            made.add(burst * 100 + step, burst * 600_000 + step * 200)
    assert 590_000 <= (made.interval_ms or 0) <= 600_000
    assert len(made) <= STEPS_KEPT


def test_time_without_anything_to_read_is_not_part_of_the_rhythm() -> None:
    """A record every ten minutes, committed two seconds after it came."""
    made = CommitHistory(0, 0)
    for record in range(1, 10):
        made.add(record, record * 600_000, unread_since_ms=record * 600_000 - 2_000)
    assert made.interval_ms == 2_000


def test_a_group_that_is_behind_anyway_waits_from_step_to_step() -> None:
    made = CommitHistory(0, 100_000)
    made.add(1, 107_000, unread_since_ms=3)
    made.add(2, 111_000, unread_since_ms=103_000)
    assert made.interval_ms == 7_000


def test_commits_that_go_back_start_again_and_keep_the_rhythm() -> None:
    made = history((0, 0), (100, 5), (200, 10), (50, 12))
    assert (made.committed, made.rewound_from, len(made)) == (50, 200, 1)
    made.add(60, 13_000)
    assert made.interval_ms == 5_000
    made.add(20, 14_000)
    assert (made.committed, made.rewound_from) == (20, 200)
    made.add(199, 16_000)
    assert made.rewound_from == 200
    made.add(200, 18_000)
    assert made.rewound_from is None


def test_commits_that_go_back_before_any_rhythm_have_none() -> None:
    made = history((100, 0), (50, 5))
    assert (made.rewound_from, made.interval_ms) == (100, None)


def test_a_coordinator_whose_clock_is_behind_the_last_ones_does_no_harm() -> None:
    made = history((0, 0), (100, 10), (200, 8), (300, 20))
    assert (made.committed, made.commit_timestamp_ms, made.interval_ms) == (300, 20_000, 10_000)
    assert made.position_at(10_000) == 200


def test_a_log_that_is_read_again_changes_nothing() -> None:
    commits = [(0, 0), (100, 5), (200, 10), (200, 15), (300, 20), (400, 25), (500, 30)]
    made, again = history(*commits), history(*commits, *commits)
    for either in (made, again):
        assert (either.committed, either.rewound_from, either.interval_ms) == (500, None, 5_000)
    again.add(400, 25_000)
    assert (again.committed, again.commit_timestamp_ms, again.rewound_from) == (500, 30_000, None)
    moments = range(0, 31_000, 500)
    assert [made.position_at(ms) for ms in moments] == [again.position_at(ms) for ms in moments]


def test_a_log_with_a_rewind_that_is_read_again_ends_where_it_did() -> None:
    commits = [(0, 0), (200, 5), (50, 10), (80, 15)]
    for made in (history(*commits), history(*commits, *commits)):
        assert (made.committed, made.commit_timestamp_ms, made.rewound_from) == (80, 15_000, 200)


def test_a_group_resumed_when_it_stepped_after_a_long_wait() -> None:
    made = history((0, 0), (1, 5), (2, 10), (3, 910), (4, 915))
    assert made.resumed_ms(15_000) == 910_000
    assert made.resumed_ms(900_000) is None


@settings(print_blob=True, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 100_000), st.integers(-30, 50)), min_size=1, max_size=300))
def test_whatever_is_committed_the_history_is_small_ordered_and_knows_the_longest_wait(
    changes: list[tuple[int, int]],
) -> None:
    """Commits ``(after ms, by offsets)``, some of them backwards."""
    now, offset = 0, 5_000
    made = CommitHistory(offset, now)
    for after, by in changes:
        now, offset = now + after, offset + by
        made.add(offset, now)
        assert made.committed == offset
        assert made.commit_timestamp_ms == now
        assert made.first_ms <= made.step_ms <= now
        assert len(made) <= STEPS_KEPT
        assert made.position_at(now) == offset
        assert (made.rewound_from or offset + 1) > offset
        middle = made.position_at((made.first_ms + made.step_ms) // 2)
        assert middle is not None
        assert made.first_offset <= middle <= offset


@settings(print_blob=True, deadline=None)
@given(st.lists(st.integers(1, 60_000), min_size=2, max_size=300))
def test_thinning_loses_no_wait_but_may_take_two_for_one(waits: list[int]) -> None:
    now = 0
    made = CommitHistory(0, 0)
    for offset, wait in enumerate(waits, 1):
        now += wait
        made.add(offset, now)
    *_, second, longest = sorted(waits)
    interval = made.interval_ms
    assert interval is not None
    assert interval <= longest
    assert made.resumed_ms(longest - 1) is not None
    assert made.resumed_ms(longest) is None
    if len(waits) < STEPS_KEPT:
        assert interval == (longest if len(waits) < ENOUGH_WAITS else second)


HOUR = 3_600


def set_back(*, offset: int) -> CommitHistory:
    """Commits of a clock that was an hour ahead, then one of now by the clock that was set right."""
    made = history((10, HOUR), (20, HOUR + 10), (30, HOUR + 20))
    made.add(offset, 30_000, None, 31_000)
    return made


def test_a_commit_outranks_those_of_a_clock_that_was_set_back() -> None:
    further = set_back(offset=35)
    assert (further.committed, further.commit_timestamp_ms, further.step_ms) == (35, 30_000, 30_000)
    assert further.rewound_from is None
    again = set_back(offset=30)
    assert (again.committed, again.commit_timestamp_ms, again.step_ms) == (30, 30_000, 30_000)
    back = set_back(offset=5)
    assert (back.committed, back.rewound_from) == (5, 30)
    further.add(40, 40_000, None, 41_000)
    assert (further.committed, len(further)) == (40, 2)


def test_an_older_commit_that_goes_no_further_was_known_before() -> None:
    made = history((10, 10), (20, 20))
    made.add(10, 10_000, None, 21_000)
    assert (made.committed, made.rewound_from) == (20, None)
    made.add(10, 10_000)  # as jobs replay them: there is no now
    assert made.committed == 20
