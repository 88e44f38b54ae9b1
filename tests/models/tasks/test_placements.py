"""Changelogs of subtopologies that are as wide as each other: what copies have tells them apart."""

from __future__ import annotations

from collections.abc import Mapping

from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import TaskId, TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.tasks.changelogs import Changelogs, find_changelogs
from caughtup.models.tasks.placements import possible_changelogs, widest_bounds

SOURCES = {"in": 0, "app-by-customer-repartition": 1}
A, B = "app-a-changelog", "app-b-changelog"
SEEN_MS = 1_000
RUNNING = -2


def table(
    ends: Mapping[str, tuple[int, int]], *, more: Mapping[str, int] | None = None
) -> EndOffsetTable:
    """List the ends of two partitions of each topic, before and after ``SEEN_MS``."""
    found = EndOffsetTable()
    for topic, own in {
        **dict.fromkeys(SOURCES, (0, 0)),
        **ends,
        **dict.fromkeys(more or (), (0, 0)),
    }.items():
        for number, end in enumerate(own):
            for at_ms in (SEEN_MS - 500, SEEN_MS + 1):
                found.apply(TopicPartition(topic, number), EndOffsets(0, end, end, at_ms))
    return found


def found(
    ends: EndOffsetTable, reported: Mapping[str, int], placed: Mapping[str, int] | None = None
) -> tuple[Changelogs, ...]:
    sums = {TaskId.parse(task): offset_sum for task, offset_sum in reported.items()}
    named = find_changelogs(
        "app", SOURCES, ends.partition_counts(), None, {task.subtopology for task in sums}, placed
    )
    return possible_changelogs(named, SOURCES, ends, sums, SEEN_MS - 100, SEEN_MS)


ENDS = table({A: (100, 200), B: (150, 120)})


def test_a_copy_that_has_more_than_one_of_them_has_the_other() -> None:
    (one,) = found(ENDS, {"0_0": 0, "1_0": 140})
    assert one.of == {0: (A,), 1: (B,)}
    assert one.placed == {A: 0, B: 1}
    assert one.unplaced == ()
    assert one.inferred == (
        f"{A} belongs to subtopology 0: copies have more offsets than the other changelogs have",
        f"{B} belongs to subtopology 1: copies have more offsets than the other changelogs have",
    )
    (other,) = found(ENDS, {"0_1": RUNNING, "1_1": 121})
    assert other.of == {0: (B,), 1: (A,)}


def test_as_long_as_it_fits_either_way_ends_are_bounded_by_both() -> None:
    ways = found(ENDS, {"0_0": 50, "1_0": 100, "1_1": RUNNING})
    assert [way.of for way in ways] == [{0: (A,), 1: (B,)}, {0: (B,), 1: (A,)}]
    assert [way.placed for way in ways] == [{}, {}]
    task, same, unknown = TaskId(0, 0), TaskId(0, 1), TaskId(1, 0)
    bounds = widest_bounds(
        [
            {task: EndOffsetSum(100, 110), same: EndOffsetSum(7, 7), unknown: None},
            {task: EndOffsetSum(90, 95), same: EndOffsetSum(7, 7), unknown: EndOffsetSum(1, 1)},
        ]
    )
    assert bounds == {task: EndOffsetSum(90, 110), same: EndOffsetSum(7, 7), unknown: None}


def test_what_was_told_once_stays_until_copies_contradict_it() -> None:
    (one,) = found(ENDS, {"0_0": RUNNING, "1_0": RUNNING}, {A: 0, B: 1})
    assert one.of == {0: (A,), 1: (B,)}
    assert one.placed == {A: 0, B: 1}
    (other,) = found(ENDS, {"0_0": 140, "1_0": RUNNING}, {A: 0, B: 1})
    assert other.of == {0: (B,), 1: (A,)}


def test_where_nobody_reported_state_it_isn_t_known_who_has_any() -> None:
    (one,) = found(ENDS, {})
    assert one.unplaced == (A, B)


def test_what_fits_no_way_and_what_fits_too_many_stays_unplaced() -> None:
    (none,) = found(ENDS, {"0_0": 1_000, "1_0": 1_000})
    assert none.unplaced == (A, B)
    many = table({f"app-{number:02}-changelog": (5, 5) for number in range(9)})
    (too_many,) = found(many, {"0_0": 1, "1_0": 1})
    assert len(too_many.unplaced) == 9


def test_several_stores_of_one_subtopology_are_told_by_their_sum() -> None:
    """Of three, 1_0 has more than any one: two of them are its own."""
    ends = table({A: (100, 0), B: (150, 0), "app-c-changelog": (10, 0)})
    ways = found(ends, {"0_0": 5, "1_0": 245})
    assert [way.of for way in ways] == [{0: ("app-c-changelog",), 1: (A, B)}]
