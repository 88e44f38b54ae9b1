"""The table of committed offsets: what is in it after commits and deletions."""

from __future__ import annotations

import gc
import tracemalloc
from array import array
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from caughtup.models.commits import table as table_module
from caughtup.models.commits.applying import apply_live, apply_past
from caughtup.models.commits.steps import StepBlocks
from caughtup.models.commits.table import CommitTable
from caughtup.models.histories.commits import CommitHistory
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.wire.consumer_offsets import OffsetCommit
from tests.support.commits import columns

ONE, TWO = TopicPartition("orders", 1), TopicPartition("orders", 2)
NOBODY = EndOffsetTable()


def commit(offset: int, at_ms: int = 1_000, topic_id: bytes | None = None) -> OffsetCommit:
    return OffsetCommit(offset, -1, "", at_ms, -1, topic_id)


def apply(
    made: CommitTable,
    group: str,
    partition: TopicPartition,
    of: OffsetCommit | None,
    ends: EndOffsetTable = NOBODY,
) -> None:
    apply_live(made, columns([(group, partition, of)]), ends)


def table(*commits: tuple[str, TopicPartition, OffsetCommit | None]) -> CommitTable:
    made = CommitTable()
    for one in commits:
        apply(made, *one)
    return made


def contents(made: CommitTable) -> list[tuple[str, TopicPartition, int]]:
    return [(group, partition, history.committed) for group, partition, history in made]


def test_commits_are_walked_by_group_and_partition_in_order() -> None:
    made = table(("b", TWO, commit(1)), ("b", ONE, commit(2)), ("a", TWO, commit(3)))
    assert contents(made) == [("a", TWO, 3), ("b", ONE, 2), ("b", TWO, 1)]
    assert (len(made), sorted(made.groups()), made.topics()) == (3, ["a", "b"], {"orders"})
    assert {partition: history.committed for partition, history in made.of("b").items()} == {
        ONE: 2,
        TWO: 1,
    }


def test_a_deleted_commit_is_gone_and_the_last_one_takes_its_group_along() -> None:
    made = table(("a", ONE, commit(1)), ("a", TWO, commit(2)), ("a", ONE, None))
    assert contents(made) == [("a", TWO, 2)]
    apply(made, "a", TWO, None)
    apply(made, "a", TWO, None)
    assert (len(made), list(made.groups()), dict(made.of("a")), made.topics()) == (0, [], {}, set())


def test_a_commit_after_a_deletion_starts_a_new_history() -> None:
    made = table(
        ("a", ONE, commit(100, 1_000)),
        ("a", ONE, commit(200, 2_000)),
        ("a", ONE, None),
        ("a", ONE, commit(5, 3_000)),
    )
    history = made.of("a")[ONE]
    assert (len(history), history.interval_ms, history.rewound_from) == (1, None, None)


def test_a_lower_commit_on_a_topic_of_another_id_is_no_rewind() -> None:
    made = table(("a", ONE, commit(100, 1_000, b"1" * 16)), ("a", ONE, commit(5, 2_000, b"2" * 16)))
    history = made.of("a")[ONE]
    assert (history.committed, history.rewound_from, history.topic_id) == (5, None, b"2" * 16)
    apply(made, "a", ONE, commit(3, 3_000, b"2" * 16))
    assert history.rewound_from is None  # made when it was asked for
    assert made.of("a")[ONE].rewound_from == 5


@pytest.mark.parametrize(("first", "second"), [(None, b"1" * 16), (b"1" * 16, None)])
def test_a_commit_without_a_topic_id_is_on_the_same_topic(
    first: bytes | None, second: bytes | None
) -> None:
    made = table(("a", ONE, commit(100, 1_000, first)), ("a", ONE, commit(105, 2_000, second)))
    history = made.of("a")[ONE]
    assert (len(history), history.topic_id) == (2, b"1" * 16)


def test_what_stands_for_a_partition_and_a_topic_id_is_kept_once() -> None:
    made = CommitTable()
    for group in ("a", "b"):
        apply(made, group, TopicPartition("orders", 1), commit(1, 1, bytes(bytearray(16))))
    (of_a,), (of_b,) = made.of("a"), made.of("b")
    assert of_a is of_b
    assert made.of("a")[of_a].topic_id is made.of("b")[of_b].topic_id


@pytest.mark.parametrize("past", [True, False])
def test_partitions_that_come_and_go_leave_nothing_behind(past: bool) -> None:
    made = table(("keeps", ONE, commit(1, 1, b"1" * 16)))

    def come_and_go(first: int) -> None:
        numbers = range(first, first + 1_000)
        topics = [(TopicPartition(f"topic-{n}", n % 3), n.to_bytes(16, "big")) for n in numbers]
        come = columns([("a", partition, commit(1, 1, of)) for partition, of in topics])
        go = columns([("a", partition, None) for partition, _ in topics])
        for poll in (come, go):
            if past:
                apply_past(made, poll)
            else:
                apply_live(made, poll, NOBODY)

    for first in range(0, 10_000, 1_000):  # names are remembered, and interned
        come_and_go(first)
    gc.collect()
    tracemalloc.start()
    try:
        for first in range(0, 10_000, 1_000):
            come_and_go(first)
        gc.collect()
        # Python's own table of interned names grows when they come and go, and not for ever.
        ours = tracemalloc.Filter(True, "*/models/commits/*")
        traces = tracemalloc.take_snapshot().filter_traces([ours]).statistics("filename")
        left = sum(one.size for one in traces)
    finally:
        tracemalloc.stop()
    assert (len(made), list(made.groups()), made.topics()) == (1, ["keeps"], {"orders"})
    assert left < 300_000
    assert made.of("keeps")[ONE].topic_id == b"1" * 16


def test_time_in_which_the_log_ended_at_the_commit_is_not_part_of_the_rhythm() -> None:
    ends = EndOffsetTable()
    made = CommitTable()
    for minute in range(1, 20):
        ends.apply(ONE, EndOffsets(0, minute, minute, minute * 60_000 - 1_000))
        ends.apply(ONE, EndOffsets(0, minute, minute, minute * 60_000 + 57_000))
        apply(made, "a", ONE, commit(minute, minute * 60_000), ends)
    assert made.of("a")[ONE].interval_ms == 3_000


def test_the_longest_interval_of_a_groups_partitions_is_the_groups() -> None:
    made = table(
        ("a", ONE, commit(1, 1_000)),
        ("a", ONE, commit(2, 8_000)),
        ("a", ONE, commit(3, 9_000)),
        ("a", TWO, commit(1, 1_000)),
        ("a", TWO, commit(2, 2_000)),
        ("a", TWO, commit(3, 3_000)),
        ("b", ONE, commit(1, 1_000)),
    )
    assert (made.interval_ms("a"), made.interval_ms("b"), made.interval_ms("c")) == (
        7_000,
        None,
        None,
    )


waits = st.lists(st.just(-1) | st.integers(0, 9), min_size=1, max_size=9)


@settings(
    print_blob=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.dictionaries(st.tuples(st.sampled_from("ab"), st.integers(0, 9)), waits),
    st.sampled_from([0, 16]),
)
def test_the_longest_interval_is_the_same_by_column_and_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
    histories: dict[tuple[str, int], list[int]],
    few: int,
) -> None:
    made = CommitTable()
    made.steps = StepBlocks(((3, 8), (6, 7)), 2)
    for (group, number), waited in histories.items():
        apply(made, group, TopicPartition("orders", number), commit(1))
        row = made.row_index.row(made.row_index.find(group, "orders"), number)
        steps = [number for at, wait in enumerate(waited) for number in (at, at, wait)]
        made.keep(row, CommitHistory.of(array("q", steps), len(waited), None, None))
    monkeypatch.setattr(table_module, "_FEW", few)
    monkeypatch.setattr(table_module, "_SOME", 2)
    for group in "ab":
        intervals = [history.interval_ms for history in made.of(group).values()]
        longest = max((one for one in intervals if one is not None), default=None)
        assert made.interval_ms(group) == longest


def test_a_group_whose_rows_move_or_go_meanwhile_has_the_longest_interval_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_module, "_SOME", 2)
    made = CommitTable()
    for number in range(8):
        for step in range(3):
            at_ms = 1_000 + step * (100 + number)
            apply(made, "a", TopicPartition("orders", number), commit(step, at_ms))
    looking = made.interval_steps("a")
    next(looking)
    for number in (8, 9, 200):  # the block grows, and lies elsewhere
        apply(made, "a", TopicPartition("orders", number), commit(0))
    for step in range(3):  # in its old place
        apply(made, "b", TopicPartition("clicks", 0), commit(step, 5_000 * step))
    apply(made, "a", TopicPartition("orders", 0), None)
    found: list[int | None] = []

    def finished() -> Generator[None, None, None]:
        found.append((yield from looking))

    list(finished())
    assert found == [107]
    looking = made.interval_steps("a")
    next(looking)
    for number in (*range(10), 200):
        apply(made, "a", TopicPartition("orders", number), None)
    assert list(looking) == []


@settings(print_blob=True, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"), st.sampled_from([ONE, TWO]), st.none() | st.integers(0, 99)
        )
    )
)
def test_the_table_holds_what_a_plain_dictionary_would(
    changes: list[tuple[str, TopicPartition, int | None]],
) -> None:
    made = CommitTable()
    plain: dict[tuple[str, TopicPartition], int] = {}
    for at_ms, (group, partition, offset) in enumerate(changes):
        apply(made, group, partition, None if offset is None else commit(offset, at_ms))
        if offset is None:
            plain.pop((group, partition), None)
        else:
            plain[group, partition] = offset
    assert contents(made) == [(*key, plain[key]) for key in sorted(plain)]
    assert len(made) == len(plain)
    assert set(made.groups()) == {group for group, _ in plain}


def rows(made: CommitTable, group: str) -> list[tuple[str, list[int], list[int]]]:
    return [
        (topic, numbers.tolist(), found.tolist()) for topic, numbers, found in made.rows_of(group)
    ]


@settings(print_blob=True, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(
                st.sampled_from("ab"),
                st.sampled_from(("orders", "clicks")),
                st.sampled_from((0, 1, 2, 7, 40, 1_000)),
                st.none() | st.integers(0, 99),
            ),
            min_size=1,
            max_size=8,
        ),
        max_size=12,
    ),
    st.booleans(),
)
def test_other_rows_have_another_layout_and_other_offsets_do_not(
    polls: list[list[tuple[str, str, int, int | None]]], past: bool
) -> None:
    made = CommitTable()
    seen = {group: (made.layout(group), rows(made, group)) for group in "ab"}
    for at_ms, poll in enumerate(polls):
        commits = columns(
            [
                (
                    group,
                    TopicPartition(topic, number),
                    None if offset is None else commit(offset, at_ms),
                )
                for group, topic, number, offset in poll
            ]
        )
        if past:
            apply_past(made, commits)
        else:
            apply_live(made, commits, NOBODY)
        for group, (layout, before) in seen.items():
            now = made.layout(group), rows(made, group)
            assert (now[0] == layout) <= (now[1] == before)
            is_new = not before or any(one[0] == group and one[3] is None for one in poll)
            known = {(topic, number) for topic, numbers, _ in before for number in numbers}
            if not is_new and {one[1:3] for one in poll if one[0] == group} <= known:
                assert now[0] == layout
            seen[group] = now
