"""What the stages do between Spark's calls."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.ids import TopicPartition
from caughtup.pipelines.events import COMMIT, END_OFFSET, Event
from caughtup.pipelines.lag_state import LagRow
from caughtup.pipelines.schema import LAG_HISTORY, LAG_ROW
from caughtup.pipelines.stages import SLOTS, observe_slot, slot_of

FAR = 2**62 + 1


def ends(partition: int, time_ms: int, end: int) -> Event:
    place = ("orders", partition, 0, time_ms, time_ms)
    return Event(END_OFFSET, *place, present=True, last_stable_offset=end, end_offset=end)


def commit(partition: int, time_ms: int, offset: int) -> Event:
    place = ("orders", partition, 1, time_ms, time_ms)
    return Event(COMMIT, *place, group="billing", present=True, committed=offset)


def pack(*events: Event) -> bytes:
    return msgspec.msgpack.encode(list(events))


def test_state_is_kept_for_each_topic_partition_of_a_slot() -> None:
    saved, rows = observe_slot(None, [pack(ends(0, 1, 10), commit(1, 2, 5)), pack(ends(1, 3, 30))])
    assert [(row.partition, row.lag) for row in rows] == [(1, 25)]
    _, rows = observe_slot(saved, [pack(commit(0, 4, 1))])
    assert [(row.partition, row.lag) for row in rows] == [(0, 9)]


def test_offsets_beyond_what_a_float_can_hold_stay_exact() -> None:
    saved, _ = observe_slot(None, [pack(ends(0, 1, FAR + 2))])
    _, (row,) = observe_slot(saved, [pack(commit(0, 2, FAR))])
    assert (row.committed, row.end_offset, row.lag) == (FAR, FAR + 2, 2)


def test_a_slot_of_which_nothing_is_known_has_no_state() -> None:
    deleted = Event(COMMIT, "orders", 0, 1, 1, 1, group="billing")
    assert observe_slot(None, [pack(deleted)]) == (None, [])


@given(st.text(), st.integers(0, 2**31 - 1))
def test_every_topic_partition_has_a_slot(topic: str, partition: int) -> None:
    assert 0 <= slot_of(TopicPartition(topic, partition)) < SLOTS


@pytest.mark.parametrize(
    ("topic", "slot"), [("orders", 80), ("payments", 211), ("__consumer_offsets", 193)]
)
def test_a_checkpoint_finds_its_slots_again(topic: str, slot: int) -> None:
    assert slot_of(TopicPartition(topic, 0)) == slot


def test_the_rows_have_the_tables_columns() -> None:
    assert list(LagRow._fields) == LAG_ROW.names
    given = {"as_of_ms": "as_of", "commit_time_ms": "commit_timestamp"}
    names = {given.get(name, name) for name in LAG_ROW.names}
    assert names | {"date"} == set(LAG_HISTORY.names)
