"""Which changelog belongs to which subtopology: as told, or inferred by rules that say so."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.offsets import LONG_MAX, EndOffsets, task_lag
from caughtup.models.tasks.changelogs import (
    Changelogs,
    SourceCommits,
    changelog_partitions,
    end_offset_sums,
    find_changelogs,
)


def changelogs(sources: dict[str, int], counts: dict[str, int]) -> Changelogs:
    return find_changelogs("app", sources, counts, None)


def test_what_the_operator_told_is_taken_as_it_is() -> None:
    found = find_changelogs(
        "app", {"in": 0}, {"in": 3, "app-seen-changelog": 3}, {1: ("b", "a"), 0: ()}
    )
    assert found == Changelogs({0: (), 1: ("b", "a")}, "settings")


def test_a_changelog_goes_with_the_repartition_topic_of_its_store() -> None:
    found = changelogs(
        {"in": 0, "app-counts-repartition": 1},
        {"in": 3, "app-counts-repartition": 3, "app-counts-changelog": 3},
    )
    assert found.of == {1: ("app-counts-changelog",)}
    assert found.provenance == "inferred"
    assert found.inferred == (
        "app-counts-changelog belongs to subtopology 1: app-counts-repartition feeds it",
    )


def test_a_changelog_goes_where_alone_are_as_many_tasks_as_it_has_partitions() -> None:
    found = changelogs({"in": 0, "clicks": 1}, {"in": 3, "clicks": 6, "app-seen-changelog": 6})
    assert found.of == {1: ("app-seen-changelog",)}
    assert found.inferred == (
        "app-seen-changelog belongs to subtopology 1: only it has 6 partitions",
    )


def test_a_subtopology_has_as_many_tasks_as_its_widest_source_topic_has_partitions() -> None:
    found = changelogs(
        {"in": 0, "more": 0, "clicks": 1}, {"in": 2, "more": 6, "clicks": 2, "app-s-changelog": 2}
    )
    assert found.of == {1: ("app-s-changelog",)}


def test_the_last_changelog_left_goes_to_the_last_subtopology_left() -> None:
    found = changelogs(
        {"in": 0, "app-counts-repartition": 1},
        {
            "in": 3,
            "app-counts-repartition": 3,
            "app-counts-changelog": 3,
            "app-seen-changelog": 3,
        },
    )
    assert found.of == {0: ("app-seen-changelog",), 1: ("app-counts-changelog",)}
    assert found.inferred[-1] == (
        "app-seen-changelog belongs to subtopology 0: no other subtopology lacks a changelog"
    )
    assert found.unplaced == ()


def test_the_last_one_left_is_not_placed_where_it_does_not_fit() -> None:
    found = changelogs(
        {"in": 0, "app-counts-repartition": 1},
        {
            "in": 4,
            "app-counts-repartition": 3,
            "app-counts-changelog": 3,
            "app-seen-changelog": 5,
        },
    )
    assert found.of == {1: ("app-counts-changelog",)}
    assert found.unplaced == ("app-seen-changelog",)


def test_changelogs_that_fit_several_subtopologies_are_left_unplaced_and_named() -> None:
    found = changelogs(
        {"in": 0, "clicks": 1},
        {"in": 3, "clicks": 3, "app-b-changelog": 3, "app-a-changelog": 3},
    )
    assert found.of == {}
    assert found.unplaced == ("app-a-changelog", "app-b-changelog")
    assert found.inferred == ()


def test_several_stores_of_one_subtopology_are_all_its_own_in_order() -> None:
    found = changelogs(
        {"in": 0, "clicks": 1},
        {"in": 3, "clicks": 6, "app-b-changelog": 6, "app-a-changelog": 6},
    )
    assert found.of == {1: ("app-a-changelog", "app-b-changelog")}


def test_topics_of_others_are_no_changelogs_of_this_application() -> None:
    counts = {"in": 3, "other-s-changelog": 3, "app2-s-changelog": 3, "app-s-repartition": 3}
    assert changelogs({"in": 0}, counts) == Changelogs({}, "inferred")


def test_nothing_known_leaves_every_changelog_unplaced() -> None:
    assert changelogs({}, {"app-s-changelog": 3}).unplaced == ("app-s-changelog",)


def test_the_order_in_which_topics_were_seen_does_not_matter() -> None:
    sources = {"in": 0, "clicks": 1, "app-counts-repartition": 2}
    counts = {
        "in": 3,
        "clicks": 6,
        "app-counts-repartition": 3,
        "app-a-changelog": 3,
        "app-b-changelog": 6,
        "app-counts-changelog": 3,
    }
    again = changelogs(dict(reversed(sources.items())), dict(reversed(counts.items())))
    assert again == changelogs(sources, counts)


def test_where_state_is_reported_without_a_changelog_the_only_source_serves_as_one() -> None:
    """A table read straight from its topic, with topology.optimization."""
    counts = {"in": 3, "clicks": 3, "app-a-changelog": 3, "app-a-repartition": 3}
    found = find_changelogs(
        "app", {"in": 0, "app-a-repartition": 1, "clicks": 2}, counts, None, {0, 1}
    )
    assert found.of == {0: ("in",), 1: ("app-a-changelog",)}
    assert found.inferred[-1] == (
        "in is the changelog of subtopology 0, which it feeds: "
        "state is reported, and there is no other topic for it"
    )
    assert found.tentative


def test_which_of_several_sources_serves_as_changelog_cannot_be_told() -> None:
    found = find_changelogs("app", {"in": 0, "more": 0}, {"in": 3, "more": 3}, None, {0})
    assert found == Changelogs({}, "inferred")


def test_no_source_serves_as_changelog_while_a_changelog_is_unplaced() -> None:
    counts = {"in": 3, "clicks": 3, "app-a-changelog": 3, "app-b-changelog": 3}
    found = find_changelogs("app", {"in": 0, "clicks": 1}, counts, None, {0, 1})
    assert found.of == {}
    assert not found.tentative


TASK = TaskId(0, 1)
ONE = Changelogs({0: ("app-a-changelog",)}, "settings")
TWO = Changelogs({0: ("app-a-changelog", "app-b-changelog")}, "settings")


def table(ends: dict[str, dict[int, int]]) -> EndOffsetTable:
    """End offsets of partition 1 of each topic: when in ms → log end offset."""
    made = EndOffsetTable()
    for topic, samples in ends.items():
        for at_ms, end in samples.items():
            for partition in (0, 1):
                sample = EndOffsets(0, end, end, at_ms)
                made.apply(TopicPartition(topic, partition), sample)
    return made


def bound(
    ends: EndOffsetTable, changelogs: Changelogs = ONE, reported: int = 0
) -> EndOffsetSum | None:
    return end_offset_sums([TASK], changelogs, ends, {TASK: reported}, 15, 15)[TASK]


def test_a_sum_goes_over_every_changelog_of_the_task() -> None:
    ends = table({"app-a-changelog": {10: 5, 20: 7}, "app-b-changelog": {10: 100, 20: 100}})
    assert bound(ends, TWO) == EndOffsetSum(105, 107)


def test_a_sum_is_unknown_while_one_changelog_is() -> None:
    assert bound(table({"app-a-changelog": {10: 5, 20: 7}}), TWO) is None
    assert bound(table({"app-a-changelog": {10: 5}})) is None


def test_a_task_without_changelogs_has_no_sum() -> None:
    stateless = TaskId(3, 0)
    assert end_offset_sums([stateless], ONE, EndOffsetTable(), {}, 15, 15) == {}


def test_the_end_was_not_below_what_a_client_had_restored() -> None:
    ends = table({"app-a-changelog": {10: 5, 20: 70}})
    assert bound(ends, reported=50) == EndOffsetSum(50, 70)
    assert bound(ends, reported=70) == EndOffsetSum(70, 70)


def test_a_copy_of_a_changelog_that_was_recreated_says_nothing_about_its_end() -> None:
    """It reports more than there is now, so it speaks of another log."""
    assert bound(table({"app-a-changelog": {10: 5, 20: 70}}), reported=500) == EndOffsetSum(5, 70)


def test_sums_stop_at_javas_greatest_long() -> None:
    ends = table({t: {10: LONG_MAX, 20: LONG_MAX} for t in TWO.of[0]})
    assert bound(ends, TWO) == EndOffsetSum(LONG_MAX, LONG_MAX)


def test_a_stores_changelog_has_a_partition_for_each_task_seen_or_not() -> None:
    """Right after it was created only some of its partitions may have been seen."""
    assert changelog_partitions(TaskId(0, 5), ONE, {"app-a-changelog": 2}) == [
        TopicPartition("app-a-changelog", 5)
    ]
    assert changelog_partitions(TASK, ONE, {}) == [TopicPartition("app-a-changelog", 1)]


def test_a_source_topic_that_serves_as_changelog_may_have_fewer_partitions_than_tasks() -> None:
    table_topic = Changelogs({0: ("prices",)}, "settings")
    assert changelog_partitions(TaskId(0, 1), table_topic, {"prices": 2}) == [
        TopicPartition("prices", 1)
    ]
    assert changelog_partitions(TaskId(0, 2), table_topic, {"prices": 2}) == []


@settings(print_blob=True, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), min_size=1, max_size=4),
    st.data(),
)
def test_a_bound_holds_the_sum_and_is_never_upside_down(
    growth: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Each changelog: its end before the moment, and how much it grew until the look after it."""
    names = [f"app-{number}-changelog" for number in range(len(growth))]
    at_moment = [low + data.draw(st.integers(0, more)) for low, more in growth]
    ends = table(
        {n: {10: low, 20: low + more} for n, (low, more) in zip(names, growth, strict=True)}
    )
    reported = data.draw(st.integers(0, sum(at_moment)))
    found = bound(ends, Changelogs({0: tuple(names)}, "settings"), reported)
    assert found is not None
    assert found.low <= sum(at_moment) <= found.high
    assert found.low >= reported


def table_commits(*commits: tuple[int, int]) -> SourceCommits:
    """Commits on partition 1 of the source ``table``: when in ms, offset. Clocks may differ by 5."""
    histories: dict[TopicPartition, CommitHistory] = {}
    for at_ms, offset in commits:
        history = histories.get(TopicPartition("table", 1))
        if history is None:
            histories[TopicPartition("table", 1)] = CommitHistory(offset, at_ms)
        else:
            history.add(offset, at_ms)
    return SourceCommits(frozenset({"table"}), histories, clock_allowance_ms=5)


def source_bound(*commits: tuple[int, int], log_end: int = 900) -> EndOffsetSum | None:
    ends = table({"table": {10: log_end, 40: log_end}})
    changelogs = Changelogs({0: ("table",)}, "settings")
    return end_offset_sums([TASK], changelogs, ends, {}, 20, 30, table_commits(*commits))[TASK]


def test_a_source_that_serves_as_changelog_ends_where_the_application_has_committed() -> None:
    """KAFKA-10085: whatever its log end is."""
    assert source_bound((10, 70)) == EndOffsetSum(70, 70)
    assert source_bound((10, 70), (20, 75), (25, 80), (31, 90), (36, 99)) == EndOffsetSum(75, 90)


def test_a_source_without_a_commit_yet_ends_at_0() -> None:
    assert source_bound() == EndOffsetSum(0, 0)
    assert source_bound((25, 80)) == EndOffsetSum(0, 80)
    assert source_bound((36, 80)) == EndOffsetSum(0, 0)


def test_what_was_committed_before_commits_went_back_is_forgotten() -> None:
    assert source_bound((10, 70), (25, 30)) == EndOffsetSum(0, 30)


def test_a_commit_before_a_moment_is_none_after_it_even_if_clocks_disagree() -> None:
    commits = table_commits((10, 70), (30, 90))
    assert commits.bounds(TopicPartition("table", 1), before_ms=40, after_ms=10) == (70, 70)


@settings(print_blob=True)
@given(st.integers(-3, 60), st.integers(0, 40), st.integers(0, 30))
def test_a_lag_is_bounded_by_the_least_and_the_greatest_that_any_end_gives(
    offset_sum: int, low: int, growth: int
) -> None:
    lags = [task_lag(offset_sum, end) for end in range(low, low + growth + 1)]
    assert EndOffsetSum(low, low + growth).lags(offset_sum) == (min(lags), max(lags))
