"""The table of committed offsets: what is in it after commits and deletions, and what it weighs."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.histories.end_offsets import EndOffsetTable
from caughtup.models.histories.group_partitions import GroupPartitions
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.wire.consumer_offsets import OffsetCommit, OffsetKey

ONE, TWO = TopicPartition("orders", 1), TopicPartition("orders", 2)
NOBODY = EndOffsetTable()


def commit(offset: int, at_ms: int = 1_000, topic_id: bytes | None = None) -> OffsetCommit:
    return OffsetCommit(offset, -1, "", at_ms, -1, topic_id)


def table(*commits: tuple[str, TopicPartition, OffsetCommit | None]) -> GroupPartitions:
    made = GroupPartitions()
    for group, partition, made_commit in commits:
        made.apply(group, partition, made_commit, NOBODY)
    return made


def contents(made: GroupPartitions) -> list[tuple[str, TopicPartition, int]]:
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
    made.apply("a", TWO, None, NOBODY)
    made.apply("a", TWO, None, NOBODY)
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
    made.apply("a", ONE, commit(3, 3_000, b"2" * 16), NOBODY)
    assert history.rewound_from == 5


@pytest.mark.parametrize(("first", "second"), [(None, b"1" * 16), (b"1" * 16, None)])
def test_a_commit_without_a_topic_id_is_on_the_same_topic(
    first: bytes | None, second: bytes | None
) -> None:
    made = table(("a", ONE, commit(100, 1_000, first)), ("a", ONE, commit(105, 2_000, second)))
    history = made.of("a")[ONE]
    assert (len(history), history.topic_id) == (2, b"1" * 16)


def test_what_stands_for_a_partition_and_a_topic_id_is_kept_once() -> None:
    made = GroupPartitions()
    for group in ("a", "b"):
        made.apply(group, TopicPartition("orders", 1), commit(1, 1, bytes(bytearray(16))), NOBODY)
    (of_a,), (of_b,) = made.of("a"), made.of("b")
    assert of_a is of_b
    assert made.of("a")[of_a].topic_id is made.of("b")[of_b].topic_id


def test_partitions_that_come_and_go_leave_nothing_behind() -> None:
    made = table(("keeps", ONE, commit(1, 1, b"1" * 16)))
    gc.collect()
    tracemalloc.start()
    try:
        for number in range(20_000):
            partition = TopicPartition(f"topic-{number}", 0)
            made.apply("a", partition, commit(1, 1, number.to_bytes(16, "big")), NOBODY)
            made.apply("a", partition, None, NOBODY)
        left, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(made) == 1
    assert left < 1_000_000
    assert made.of("keeps")[ONE].topic_id == b"1" * 16


def test_time_in_which_the_log_ended_at_the_commit_is_not_part_of_the_rhythm() -> None:
    ends = EndOffsetTable()
    made = GroupPartitions()
    for minute in range(1, 20):
        ends.apply(ONE, EndOffsets(0, minute, minute, minute * 60_000 - 1_000))
        ends.apply(ONE, EndOffsets(0, minute, minute, minute * 60_000 + 57_000))
        made.apply("a", ONE, commit(minute, minute * 60_000), ends)
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
    made = GroupPartitions()
    plain: dict[tuple[str, TopicPartition], int] = {}
    for at_ms, (group, partition, offset) in enumerate(changes):
        made.apply(group, partition, None if offset is None else commit(offset, at_ms), NOBODY)
        if offset is None:
            plain.pop((group, partition), None)
        else:
            plain[group, partition] = offset
    assert contents(made) == [(*key, plain[key]) for key in sorted(plain)]
    assert len(made) == len(plain)
    assert set(made.groups()) == {group for group, _ in plain}


@settings(print_blob=True, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.builds(
                OffsetKey, st.sampled_from("ab"), st.sampled_from(["orders"]), st.integers(1, 2)
            ),
            st.none()
            | st.builds(
                commit, st.integers(0, 9), st.integers(1, 9), st.sampled_from([None, b"1", b"2"])
            ),
        )
    ),
    st.booleans(),
)
def test_commits_taken_together_come_to_what_they_do_one_by_one(
    batches: list[dict[OffsetKey, OffsetCommit | None]], looked_at: bool
) -> None:
    ends = EndOffsetTable()
    if looked_at:
        for at_ms in range(10):
            ends.apply(ONE, EndOffsets(0, at_ms // 2, at_ms // 2, at_ms))
    together, singly = GroupPartitions(), GroupPartitions()
    for batch in batches:
        before = {(group, *partition) for group, partition, _ in together}
        changed = together.apply_all(batch, ends)
        for key, made in batch.items():
            singly.apply(key.group, TopicPartition(key.topic, key.partition), made, ends)
        after = {(group, *partition) for group, partition, _ in together}
        assert sorted(changed) == sorted(before ^ after)

    def everything(made: GroupPartitions) -> list[object]:
        return [
            (group, partition, h._steps, h.commit_timestamp_ms, h.rewound_from, h.topic_id)
            for group, partition, h in made
        ]

    assert everything(together) == everything(singly)


@pytest.mark.parametrize(
    ("steps", "limit"),
    [pytest.param(1, 350, id="one"), pytest.param(16, 700, id="a full history")],
)
def test_a_million_group_partitions_fit_into_700_megabytes(steps: int, limit: int) -> None:
    """Some of them are measured, 30 groups on 100 partitions, in bytes for each."""
    groups = [f"group-{number}" for number in range(30)]
    gc.collect()
    tracemalloc.start()
    try:
        made = GroupPartitions()
        for step in range(steps):
            for group in groups:
                for number in range(100):
                    made.apply(
                        group,
                        TopicPartition("orders", number),
                        commit(5_000_000_000 + step, 1_790_000_000_000 + step * 30_000),
                        NOBODY,
                    )
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(made) == 3_000
    assert used / len(made) < limit
