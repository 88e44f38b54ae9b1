"""End offsets over time: what the samples around a moment say about that moment."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.histories.end_offsets import DENSE_SAMPLES, SAMPLES_KEPT, EndOffsetHistory
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets

PARTITION = TopicPartition("orders-counts-changelog", 0)


def sample(end: int, at_ms: int) -> EndOffsets:
    return EndOffsets(0, end, end, at_ms)


def table(*samples: tuple[int, int]) -> EndOffsetTable:
    """A table with samples of one partition: (log end offset, when in ms)."""
    ends = EndOffsetTable()
    for end, at_ms in samples:
        ends.apply(PARTITION, sample(end, at_ms))
    return ends


def test_a_moment_is_bounded_by_the_samples_before_and_after_it() -> None:
    ends = table((10, 100), (20, 200), (30, 300))
    assert ends.bounds(PARTITION, 250, 250) == (20, 30)
    assert ends.bounds(PARTITION, 150, 250) == (10, 30)


def test_a_sample_of_the_moment_itself_settles_it() -> None:
    assert table((10, 100), (20, 200), (30, 300)).bounds(PARTITION, 200, 200) == (20, 20)


def test_a_log_that_did_not_grow_is_known_exactly_between_its_samples() -> None:
    assert table((10, 100), (10, 200), (10, 300)).bounds(PARTITION, 150, 250) == (10, 10)


def test_a_moment_after_the_last_sample_is_not_bounded() -> None:
    ends = table((10, 100), (20, 200))
    assert ends.bounds(PARTITION, 150, 201) is None
    assert ends.bounds(PARTITION, 150, 200) == (10, 20)


def test_a_partition_first_seen_later_counts_from_0() -> None:
    assert table((20, 200), (30, 300)).bounds(PARTITION, 100, 150) == (0, 20)


def test_a_partition_that_was_never_seen_is_not_bounded() -> None:
    assert EndOffsetTable().bounds(PARTITION, 0, 0) is None
    assert EndOffsetTable().latest(PARTITION) is None


def test_a_recreated_log_forgets_what_was_before_it() -> None:
    ends = table((500, 100), (600, 200), (5, 300), (7, 400))
    assert ends.bounds(PARTITION, 250, 350) == (0, 7)
    assert ends.bounds(PARTITION, 300, 300) == (5, 5)
    assert ends.latest(PARTITION) == sample(7, 400)


def test_a_sample_that_comes_late_changes_nothing() -> None:
    ends = table((10, 100), (30, 300), (20, 200))
    assert ends.latest(PARTITION) == sample(30, 300)
    assert ends.bounds(PARTITION, 250, 250) == (10, 30)


def test_an_idle_partition_keeps_one_entry_however_often_it_is_sampled() -> None:
    history = EndOffsetHistory(sample(10, 0))
    for at_ms in range(1, SAMPLES_KEPT * 3):
        history.add(sample(10, at_ms))
    assert history.at_or_before(0) == history.at_or_after(SAMPLES_KEPT * 3 - 1) == 10
    assert history.at_or_after(SAMPLES_KEPT * 3) is None


def test_old_samples_are_thinned_and_bounds_stay_true() -> None:
    last = SAMPLES_KEPT * 5
    ends = table(*((at_ms, at_ms) for at_ms in range(last + 1)))
    for moment in range(last - DENSE_SAMPLES + 1, last + 1):
        assert ends.bounds(PARTITION, moment, moment) == (moment, moment)
    for moment in range(last):
        bounds = ends.bounds(PARTITION, moment, moment)
        assert bounds is not None
        assert bounds[0] <= moment <= bounds[1]
    assert ends.bounds(PARTITION, 0, 0) == (0, 0)


def test_a_history_is_bounded_and_reaches_back_for_hours() -> None:
    """A sample a second for five hours: some forty stay, and tell a moment to a share of its age."""
    history = EndOffsetHistory(sample(0, 0))
    now = 5 * 3_600
    for second in range(1, now + 1):
        history.add(sample(second, second * 1_000))
        assert len(history) <= SAMPLES_KEPT
    assert now - 4 * 3_600 - 3_600 <= history.first.at_ms / 1_000 <= now - 2 * 3_600
    for age in (10, 60, 300, 900, 1_800, 3_600):
        before, after = history.around(now - age)
        assert before is not None
        assert after is not None
        assert before.readable_end <= now - age < after.readable_end
        assert after.at_ms - before.at_ms <= 800 * age


def test_a_record_was_appended_between_the_two_samples_around_its_offset() -> None:
    history = EndOffsetHistory(sample(10, 100))
    for end, at_ms in ((10, 200), (20, 300), (20, 400), (30, 500)):
        history.add(sample(end, at_ms))
    assert history.around(9) == (None, (10, 100))
    assert history.around(10) == history.around(19) == ((10, 200), (20, 300))
    assert history.around(20) == history.around(29) == ((20, 400), (30, 500))
    assert history.around(30) == ((30, 500), None)


def test_the_end_is_interpolated_between_samples_and_never_beyond_them() -> None:
    history = EndOffsetHistory(sample(10, 100))
    history.add(sample(20, 200))
    assert [history.readable_end_at(ms) for ms in (99, 100, 150, 200, 201)] == [
        None,
        10,
        15,
        20,
        None,
    ]


def test_the_resolution_of_a_history_is_the_time_between_its_newest_samples_that_differ() -> None:
    history = EndOffsetHistory(sample(10, 100))
    assert history.spacing_ms == 0
    history.add(sample(10, 900))
    assert history.spacing_ms == 0
    history.add(sample(20, 1_000))
    history.add(sample(20, 5_000))
    assert history.spacing_ms == 100


def test_what_a_reader_may_read_ends_with_the_last_stable_offset_while_the_readable_end_is_unknown() -> (
    None
):
    history = EndOffsetHistory(EndOffsets(0, 10, 90, 100))
    history.add(EndOffsets(0, 80, 90, 200))
    assert history.around(10) == ((10, 100), (80, 200))
    assert history.at_or_before(100) == history.at_or_after(200) == 90


def test_markers_that_turn_out_to_be_some_were_never_readable() -> None:
    history = EndOffsetHistory(EndOffsets(0, 5, 5, 100))
    for at_ms in (200, 300, 400):
        history.add(EndOffsets(0, 11, 11, at_ms))
    assert history.around(10) == ((5, 100), (11, 200))
    history.add(EndOffsets(0, 11, 11, 500, readable_end_offset=10))
    history.add(EndOffsets(0, 11, 11, 600, readable_end_offset=10))
    assert history.around(9) == ((5, 100), (10, 200))
    assert history.around(10) == ((10, 600), None)
    history.add(EndOffsets(0, 13, 13, 700))
    assert history.around(10) == ((10, 600), (13, 700))


def test_samples_that_are_read_again_change_nothing() -> None:
    seen = [(second // 3 * 7, second * 1_000) for second in range(200)]
    once, twice = table(*seen), table(*seen, *seen)
    for moment in range(0, 200_000, 700):
        assert once.bounds(PARTITION, moment, moment) == twice.bounds(PARTITION, moment, moment)


def test_two_samples_of_one_moment_count_as_the_later_one() -> None:
    ends = table((10, 100), (20, 100))
    assert ends.bounds(PARTITION, 100, 100) == (20, 20)


def test_the_latest_sample_has_all_three_offsets() -> None:
    ends = table((10, 100))
    newer = EndOffsets(4, 8, 10, 200)
    ends.apply(PARTITION, newer)
    assert ends.latest(PARTITION) == newer
    assert list(ends) == [(PARTITION, newer)]


def test_partitions_are_counted_by_topic_and_forgotten_when_they_are_gone() -> None:
    ends = EndOffsetTable()
    for topic, partition in (("a", 0), ("a", 1), ("b", 0)):
        ends.apply(TopicPartition(topic, partition), sample(1, 1))
    assert (ends.partition_counts(), len(ends)) == ({"a": 2, "b": 1}, 3)
    for topic, partition in (("a", 1), ("b", 0), ("b", 0), ("c", 9)):
        ends.apply(TopicPartition(topic, partition), None)
    assert (ends.partition_counts(), len(ends)) == ({"a": 1}, 1)
    assert ends.bounds(TopicPartition("b", 0), 1, 1) is None


@settings(print_blob=True, deadline=None)
@given(
    growth=st.lists(st.tuples(st.integers(1, 50), st.integers(0, 20)), min_size=1, max_size=400),
    samples=st.data(),
)
def test_bounds_hold_the_truth_for_any_log_that_only_grows(
    growth: list[tuple[int, int]], samples: st.DataObject
) -> None:
    """The log grows by ``(after ms, by offsets)`` steps, and some of its states are sampled."""
    truth: list[tuple[int, int]] = [(0, 0)]
    for after, by in growth:
        truth.append((truth[-1][0] + after, truth[-1][1] + by))
    seen = samples.draw(st.lists(st.sampled_from(truth), min_size=1, max_size=300, unique=True))
    ends = EndOffsetTable()
    for at_ms, end in sorted(seen):
        ends.apply(PARTITION, sample(end, at_ms))
    moment, end = samples.draw(st.sampled_from(truth))
    before = moment - samples.draw(st.integers(0, 100))
    after = moment + samples.draw(st.integers(0, 100))
    bounds = ends.bounds(PARTITION, before, after)
    if bounds is None:
        assert after > max(seen)[0]
    else:
        low, high = bounds
        assert low <= end <= high


HOUR_MS = 3_600_000


def test_a_sample_outranks_those_of_a_clock_that_was_set_back() -> None:
    ends = table((10, HOUR_MS), (20, 2 * HOUR_MS), (25, 3 * HOUR_MS))
    now_ms = HOUR_MS + 1_000
    ends.apply(PARTITION, sample(30, now_ms), now_ms)
    latest = ends.latest(PARTITION)
    assert latest is not None
    assert (latest.end_offset, latest.as_of_ms) == (30, now_ms)
    history = ends.history(PARTITION)
    assert history is not None
    assert (len(history), history.last_ms, history.first.at_ms) == (2, now_ms, HOUR_MS)
    assert ends.bounds(PARTITION, now_ms - 500, now_ms) == (10, 30)


def test_a_sample_outranks_a_history_that_is_all_of_the_future() -> None:
    ends = table((99, 2 * HOUR_MS))
    ends.apply(PARTITION, sample(30, 5), 10)
    latest = ends.latest(PARTITION)
    assert latest is not None
    assert (latest.end_offset, latest.as_of_ms) == (30, 5)


def test_an_old_sample_is_ignored_whatever_there_is_of_the_future() -> None:
    ends = table((10, 1_000), (20, 2_000), (25, HOUR_MS))
    ends.apply(PARTITION, sample(5, 1_500), 3_000)
    latest = ends.latest(PARTITION)
    assert latest is not None
    assert latest.end_offset == 25
    ends.apply(PARTITION, sample(21, 3_000), 3_000)
    assert ends.bounds(PARTITION, 2_500, 2_500) == (20, 21)


@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=30),
    st.integers(0, 60),
)
@settings(print_blob=True)
def test_times_only_grow_wherever_the_clock_goes(samples: list[tuple[int, int]], now: int) -> None:
    history = EndOffsetHistory(sample(*samples[0]))
    for end, at_ms in samples[1:]:
        history.add(sample(end, at_ms), now)
        times = [history.around(offset) for offset in range(100)]
        assert all(a.at_ms < b.at_ms for a, b in times if a is not None and b is not None)
    history.add(sample(50, now), now)
    assert history.latest == sample(50, now)
    assert history.last_ms == now


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40))
def test_log_ends_are_as_without_transactions_and_readable_ends_as_without_other_records(
    samples: list[tuple[int, int]],
) -> None:
    """Samples: how many records were appended, and how many are behind the last stable offset."""
    end = stable = 0
    made = []
    for at_ms, (grown, held) in enumerate(samples):
        end += grown
        stable = max(stable, end - held)
        made.append(EndOffsets(0, stable, end, at_ms))
    history = EndOffsetHistory(made[0])
    plain = EndOffsetHistory(sample(made[0].end_offset, 0))
    readable = EndOffsetHistory(sample(made[0].last_stable_offset, 0))
    for one in made[1:]:
        history.add(one)
        history = history.copy()
        plain.add(sample(one.end_offset, one.as_of_ms))
        readable.add(sample(one.last_stable_offset, one.as_of_ms))
    for at_ms in range(len(made)):
        assert history.at_or_before(at_ms) == plain.at_or_before(at_ms)
        assert history.readable_end_at(at_ms) == readable.readable_end_at(at_ms)
