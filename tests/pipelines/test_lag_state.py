"""The fold from events to lag rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.lag import EndOffsets, partition_lag
from caughtup.pipelines.events import COMMIT, END_OFFSET, Event
from caughtup.pipelines.lag_state import LagRow, PartitionState, in_order
from caughtup.pipelines.schema import GROUP_BUCKETS, LAG_ROW, group_bucket


def ends(
    time_ms: int, end: int, *, stable: int | None = None, start: int = 0, at: int = 0
) -> Event:
    return Event(
        END_OFFSET,
        "orders",
        3,
        0,
        at or time_ms,
        time_ms,
        present=True,
        start_offset=start,
        last_stable_offset=end if stable is None else stable,
        end_offset=end,
    )


def gone(time_ms: int) -> Event:
    return Event(END_OFFSET, "orders", 3, 0, time_ms, time_ms)


def commit(time_ms: int, offset: int, group: str = "billing", *, at: int = 0) -> Event:
    return Event(
        COMMIT, "orders", 3, 1, at or time_ms, time_ms, group, present=True, committed=offset
    )


def deleted(time_ms: int, group: str = "billing") -> Event:
    return Event(COMMIT, "orders", 3, 1, time_ms, time_ms, group)


def observe(*triggers: list[Event]) -> list[LagRow]:
    state = PartitionState("orders", 3)
    return [row for events in triggers for row in state.observe(events)]


def seen(rows: list[LagRow]) -> list[tuple[int, str, int | None, int, str]]:
    return [(row.as_of_ms, row.group, row.committed, row.lag, row.source) for row in rows]


def test_a_row_has_the_columns_of_its_schema_in_order() -> None:
    assert list(LagRow._fields) == LAG_ROW.names


def test_a_commit_waits_for_the_first_end_offsets_and_is_not_lost() -> None:
    state = PartitionState("orders", 3)
    assert list(state.observe([commit(1, 10), commit(2, 20)])) == []
    assert not state.empty
    assert seen(list(state.observe([ends(5, 100)]))) == [(5, "billing", 20, 80, END_OFFSET)]


def test_markers_at_the_end_are_no_lag_where_the_service_found_them() -> None:
    event = ends(1, 100)._replace(readable_end_offset=98)
    (row,) = observe([event, commit(2, 98)])
    assert (row.lag, row.lag_committed_view) == (0, 2)


def test_a_commit_is_measured_against_the_end_offsets_of_its_time() -> None:
    rows = observe([ends(1, 100), commit(2, 10), ends(3, 200), commit(4, 150)])
    assert seen(rows) == [
        (2, "billing", 10, 90, COMMIT),
        (3, "billing", 10, 190, END_OFFSET),
        (4, "billing", 150, 50, COMMIT),
    ]


def test_the_two_views_differ_by_the_open_transaction() -> None:
    (row,) = observe([ends(1, 100, stable=60, start=5), commit(2, 10)])
    assert (row.lag, row.lag_committed_view) == (50, 90)
    assert (row.start_offset, row.last_stable_offset, row.end_offset) == (5, 60, 100)
    assert row.group_bucket == group_bucket("billing") < GROUP_BUCKETS


def test_what_repeats_itself_makes_no_row() -> None:
    assert observe([ends(1, 100), commit(2, 10)], [commit(3, 10), ends(4, 100)])[1:] == []


def test_a_repeated_commit_is_remembered_with_its_new_time() -> None:
    rows = observe([ends(1, 100), commit(2, 10), commit(3, 10), ends(4, 101)])
    assert rows[-1].commit_time_ms == 3


def test_end_offsets_change_every_groups_lag_in_the_groups_order() -> None:
    rows = observe([ends(1, 100), commit(2, 10, "b"), commit(3, 20, "a"), ends(4, 110)])
    assert seen(rows)[2:] == [(4, "a", 20, 90, END_OFFSET), (4, "b", 10, 100, END_OFFSET)]


def test_a_deleted_commit_makes_a_last_row_and_is_forgotten() -> None:
    rows = observe([ends(1, 100, start=40), commit(2, 50)], [deleted(3)], [ends(4, 200)])
    assert seen(rows)[1:] == [(3, "billing", None, 60, COMMIT)]
    assert (rows[-1].has_commit, rows[-1].commit_time_ms) == (False, None)


def test_deleting_what_was_never_there_makes_no_row() -> None:
    assert observe([ends(1, 100), deleted(2)]) == []


def test_a_partition_that_is_gone_leaves_no_state_once_its_commits_are() -> None:
    state = PartitionState("orders", 3)
    list(state.observe([ends(1, 100), commit(2, 10), gone(3), deleted(4)]))
    assert state.empty


def test_a_partition_made_anew_makes_rows_from_its_new_end_offsets() -> None:
    rows = observe([ends(1, 100), commit(2, 10), gone(3), commit(4, 2), ends(5, 7)])
    assert seen(rows)[1:] == [(5, "billing", 2, 5, END_OFFSET)]


def test_an_older_look_that_comes_later_is_not_believed() -> None:
    rows = observe([ends(5, 100, at=1), commit(6, 10)], [ends(4, 90, at=2), commit(7, 20)])
    assert [row.end_offset for row in rows] == [100, 100]


def test_a_row_is_as_of_the_later_of_its_two_inputs() -> None:
    assert seen(observe([ends(9, 100)], [commit(4, 10)])) == [(9, "billing", 10, 90, COMMIT)]
    assert seen(observe([commit(9, 10)], [ends(4, 100)])) == [(9, "billing", 10, 90, END_OFFSET)]


def test_the_log_decides_which_commit_is_last_when_the_clock_goes_back() -> None:
    rows = observe([ends(1, 100), commit(9, 10, at=1), commit(4, 20, at=2)])
    assert [row.committed for row in rows] == [10, 20]


EVENTS = st.lists(
    st.one_of(
        st.builds(
            ends, st.integers(1, 60), st.integers(0, 50), at=st.integers(1, 1000), start=st.just(0)
        ),
        st.builds(gone, st.integers(1, 60)),
        st.builds(
            commit,
            st.integers(1, 60),
            st.integers(0, 60),
            st.sampled_from(["a", "b"]),
            at=st.integers(1, 1000),
        ),
        st.builds(deleted, st.integers(1, 60), st.sampled_from(["a", "b"])),
    ),
    unique_by=lambda event: (event.kind, event.log_offset),
    max_size=30,
)


@given(EVENTS, st.randoms(use_true_random=False))
def test_the_order_in_which_records_arrive_in_a_trigger_does_not_matter(events, random) -> None:
    shuffled = list(events)
    random.shuffle(shuffled)
    assert observe(events) == observe(shuffled)


@given(EVENTS)
def test_each_log_keeps_its_order(events) -> None:
    ordered = list(in_order(events))
    for kind in (COMMIT, END_OFFSET):
        offsets = [event.log_offset for event in ordered if event.kind == kind]
        assert offsets == sorted(offsets)


@given(EVENTS)
def test_a_row_is_the_models_lag_and_no_row_repeats_the_groups_last(events) -> None:
    last: dict[str, LagRow] = {}
    for row in observe(events):
        known = EndOffsets(row.start_offset, row.last_stable_offset, row.end_offset, row.as_of_ms)
        lag = partition_lag(row.committed, known, row.commit_time_ms)
        assert (lag.lag, lag.lag_committed_view, lag.has_commit) == (
            row.lag,
            row.lag_committed_view,
            row.has_commit,
        )
        before = last.get(row.group)
        if before is not None and row.source == COMMIT:
            assert row.committed != before.committed or row.end_offset != before.end_offset
        last[row.group] = row


@given(EVENTS, st.integers(0, 30))
def test_the_last_row_of_a_group_is_its_state_however_the_records_are_cut(events, cut) -> None:
    ordered = list(in_order(events))
    together, apart = PartitionState("orders", 3), PartitionState("orders", 3)
    rows = list(together.observe(ordered))
    cut_rows = [*apart.observe(ordered[:cut]), *apart.observe(ordered[cut:])]
    assert cut_rows == rows
    assert (apart.ends, apart.commits) == (together.ends, together.commits)
