"""The table in columns against plain dictionaries, and what a log's past leaves against its last."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.commits.applying import apply_live, apply_past
from caughtup.models.commits.steps import StepBlocks
from caughtup.models.commits.table import CommitTable
from caughtup.models.histories.end_offset_table import EndOffsetTable
from caughtup.models.ids import TopicPartition
from caughtup.models.offsets import EndOffsets
from caughtup.models.wire.consumer_offsets import OffsetCommit
from tests.support.commits import Made, columns
from tests.support.plain_commits import PlainCommits

HOUR_MS = 3_600_000
IDS = [None, b"1" * 16, b"2" * 16]

commits = st.builds(
    OffsetCommit,
    st.integers(0, 9),
    st.just(-1),
    st.just(""),
    st.integers(1, 9) | st.just(HOUR_MS),
    st.just(-1),
    st.sampled_from(IDS),
)
#: Some partitions lie in a block, some far apart.
partitions = st.builds(
    TopicPartition,
    st.sampled_from(["orders", "clicks"]),
    st.sampled_from([0, 1, 7, 30, 999_999_999]),
)
polls = st.lists(
    st.lists(st.tuples(st.sampled_from("ab"), partitions, st.none() | commits), max_size=12),
    max_size=8,
)


def everything(made: CommitTable | PlainCommits) -> list[object]:
    return [
        (group, partition, h.steps, h.commit_timestamp_ms, h.rewound_from, h.topic_id)
        for group, partition, h in made
    ]


def end_offsets() -> EndOffsetTable:
    ends = EndOffsetTable()
    for at_ms in range(10):
        ends.apply(TopicPartition("orders", 1), EndOffsets(0, at_ms // 2, at_ms // 2, at_ms))
    return ends


@settings(print_blob=True, deadline=None)
@given(polls, st.booleans(), st.none() | st.just(20))
def test_commits_as_they_come_leave_what_a_plain_dictionary_of_histories_holds(
    made: list[list[Made]], looked_at: bool, now_ms: int | None
) -> None:
    ends = end_offsets() if looked_at else EndOffsetTable()
    table, plain = CommitTable(), PlainCommits()
    for poll in made:
        apply_live(table, columns(poll), ends, now_ms)
        last = {(group, partition): commit for group, partition, commit in poll}
        for (group, partition), commit in last.items():
            plain.apply(group, partition, commit, ends, now_ms)
        assert everything(table) == everything(plain)
        assert len(table) == len(plain)
        assert set(table.groups()) == set(plain.groups())
        assert table.topics() == plain.topics()
        for group in "ab":
            assert dict(table.of(group)).keys() == plain.of(group).keys()
            assert table.interval_ms(group) == plain.interval_ms(group)


#: By poll, of each of three groups' partitions that commit: how far, and how long after the last.
advances = st.lists(
    st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.integers(0, 5)),
        st.tuples(
            st.sampled_from([0, 1, 1, 2, 50, -1]), st.sampled_from([0, 1, 900, 1_000, 9_000, -5])
        ),
        min_size=1,
    ),
    max_size=45,
)


@settings(print_blob=True, deadline=None)
@given(advances, st.sampled_from([None, [(4, 15), (9, 7)]]))
def test_many_commits_that_advance_at_once_leave_what_one_by_one_would(
    made: list[dict[tuple[str, int], tuple[int, int]]], narrow: list[tuple[int, int]] | None
) -> None:
    ends, table, plain = EndOffsetTable(), CommitTable(), PlainCommits()
    if narrow is not None:
        table.steps = StepBlocks(narrow, block=4)
    last: dict[tuple[str, int], tuple[int, int]] = {}
    for turn, poll in enumerate(made):
        for number in range(0, 6, 2):
            end = 60 * turn
            ends.apply(TopicPartition("orders", number), EndOffsets(0, end, end, 1_500 * turn))
        commits = []
        for (group, number), (moved, passed) in poll.items():
            offset, at_ms = last.get((group, number), (100, 1_000))
            last[group, number] = max(0, offset + moved), max(1, at_ms + passed)
            commit = OffsetCommit(last[group, number][0], -1, "", last[group, number][1], -1, None)
            commits.append((group, TopicPartition("orders", number), commit))
            plain.apply(group, TopicPartition("orders", number), commit, ends, None)
        apply_live(table, columns(commits), ends)
        if narrow is None:
            assert everything(table) == everything(plain)
        for group, partition, history in table:
            there = plain.of(group)[partition]
            assert (history.committed, history.commit_timestamp_ms, history.step_ms) == (
                (there.committed, there.commit_timestamp_ms, there.step_ms)
            )
            assert max(history.steps[2::3]) <= max(there.steps[2::3])


@settings(print_blob=True, deadline=None)
@given(
    st.lists(st.sampled_from([1, 1_000, 1_000, 60_000, HOUR_MS, 7 * HOUR_MS]), max_size=30),
    st.lists(st.integers(1, 9), min_size=3, max_size=3),
    st.none() | st.just((3, 7)),
)
def test_histories_that_are_full_are_thinned_at_once_as_one_by_one(
    gaps: list[int], strides: list[int], narrow: tuple[int, int] | None
) -> None:
    ends, table, single = EndOffsetTable(), CommitTable(), CommitTable()
    if narrow is not None:
        table.steps, single.steps = StepBlocks([narrow], 2), StepBlocks([narrow], 2)
    at_ms = 2 * HOUR_MS
    for turn, gap in enumerate([1_000] * 16 + gaps):
        at_ms += gap
        poll: list[Made] = [
            (
                "a",
                TopicPartition("orders", number),
                OffsetCommit(9 * turn, -1, "", at_ms + turn * stride, -1, None),
            )
            for number, stride in enumerate(strides)
        ]
        apply_live(table, columns(poll), ends)
        for group, partition, commit in poll:
            known = single.find(group, partition)
            if known is None:
                apply_live(single, columns([(group, partition, commit)]), ends)
                continue
            known.add(commit.offset, commit.commit_timestamp_ms)
            head = single.row_index.find(group, partition.topic)
            single.keep(single.row_index.row(head, partition.partition), known)
        assert everything(table) == everything(single)


@settings(print_blob=True, deadline=None)
@given(polls, polls)
def test_what_is_past_is_the_last_commit_of_each_key_however_it_was_polled(
    past: list[list[Made]], live: list[list[Made]]
) -> None:
    table, plain = CommitTable(), PlainCommits()
    last: dict[tuple[str, TopicPartition], OffsetCommit | None] = {}
    ids: dict[tuple[str, TopicPartition], bytes | None] = {}
    for poll in past:
        apply_past(table, columns(poll))
        for group, partition, commit in poll:
            last[group, partition] = commit
        for key in {(group, partition) for group, partition, _ in poll}:
            commit = last[key]
            if commit is None:
                ids.pop(key, None)
            else:
                ids[key] = commit.topic_id or ids.get(key)
    found = {(group, partition): history for group, partition, history in table}
    assert found.keys() == {key for key, commit in last.items() if commit is not None}
    for key, history in found.items():
        commit = last[key]
        assert commit is not None
        assert (history.committed, history.commit_timestamp_ms, len(history), history.topic_id) == (
            commit.offset,
            commit.commit_timestamp_ms,
            1,
            ids[key],
        )
        plain.put(*key, history)
    # And it goes on from there as from any history.
    for poll in live:
        apply_live(table, columns(poll), EndOffsetTable())
        for (group, partition), commit in {(g, p): commit for g, p, commit in poll}.items():
            plain.apply(group, partition, commit, EndOffsetTable())
    assert everything(table) == everything(plain)
