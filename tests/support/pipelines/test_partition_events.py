"""Offset commits and end offsets as events, record by record."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines.events import KafkaRecord, Undecodable
from caughtup.pipelines.schema import END_OFFSETS_TOPIC
from tests.support.pipelines.partition_events import COMMIT, END_OFFSET, Event, decode_events


def string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def commit_key(group: str = "billing", topic: str = "orders", partition: int = 3) -> bytes:
    return struct.pack(">h", 1) + string(group) + string(topic) + struct.pack(">i", partition)


def commit_value(offset: int, time_ms: int) -> bytes:
    return struct.pack(">hqi", 3, offset, -1) + string("") + struct.pack(">q", time_ms)


def commit(offset: int = 40, time_ms: int = 4_000, at: int = 7) -> KafkaRecord:
    return KafkaRecord(CONSUMER_OFFSETS, 2, at, 9_999, commit_key(), commit_value(offset, time_ms))


def decode(*records: KafkaRecord) -> list[Event | Undecodable]:
    return list(decode_events(records))


def test_a_commit_is_timed_by_itself_and_placed_by_its_record() -> None:
    assert decode(commit(offset=40, time_ms=4_000, at=7)) == [
        Event(COMMIT, "orders", 3, 2, 7, 4_000, group="billing", present=True, committed=40)
    ]


def test_every_commit_of_a_key_is_an_event() -> None:
    assert [event.committed for event in decode(commit(1), commit(2), commit(3))] == [1, 2, 3]


def test_a_deleted_commit_is_timed_by_its_record() -> None:
    record = KafkaRecord(CONSUMER_OFFSETS, 2, 7, 9_999, commit_key(), None)
    assert decode(record) == [Event(COMMIT, "orders", 3, 2, 7, 9_999, group="billing")]


def test_group_metadata_and_later_key_types_make_no_event() -> None:
    keys = [struct.pack(">h", key_type) + string("billing") for key_type in (2, 3, 99)]
    assert decode(*(KafkaRecord(CONSUMER_OFFSETS, 0, 0, 0, key, b"anything") for key in keys)) == []


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (KafkaRecord(CONSUMER_OFFSETS, 2, 7, 0, None, b""), "without a key"),
        (KafkaRecord(CONSUMER_OFFSETS, 2, 7, 0, b"\0", b""), ""),
        (KafkaRecord(CONSUMER_OFFSETS, 2, 7, 0, commit_key(), b"\0\3\0"), ""),
        (KafkaRecord(CONSUMER_OFFSETS, 2, 7, 0, commit_key(), b"\0\x63" + bytes(40)), "version 99"),
        (commit(time_ms=2**63 - 1), "bad_time"),
        (commit(time_ms=-1), "bad_time"),
    ],
)
def test_a_record_that_cannot_be_decoded_says_where_and_why_and_loses_nothing_else(
    record: KafkaRecord, why: str
) -> None:
    before, error, after = decode(commit(1), record, commit(2))
    assert (before.committed, after.committed) == (1, 2)
    assert isinstance(error, Undecodable)
    assert error.record == record
    assert why in error.why
    assert str(error).startswith(f"{record.topic}-{record.partition} offset {record.offset}: ")
    assert len(str(error).splitlines()) == 1


def test_commits_and_end_offsets_stay_in_their_order() -> None:
    value = b'{"schema":1,"topic":"orders","partition":3,"start_offset":1,'
    value += b'"last_stable_offset":90,"end_offset":100,"as_of_ms":5000}'
    ends = KafkaRecord(END_OFFSETS_TOPIC, 4, 11, 9_999, b"orders-3", value)
    first, second = decode(commit(1), ends)
    assert isinstance(first, Event)
    assert first.kind == COMMIT
    offsets = {"start_offset": 1, "last_stable_offset": 90, "end_offset": 100}
    assert second == Event(END_OFFSET, "orders", 3, 4, 11, 5_000, present=True, **offsets)


@given(key=st.none() | st.binary() | st.just(commit_key()), value=st.none() | st.binary())
def test_no_bytes_at_all_break_the_decoder(key: bytes | None, value: bytes | None) -> None:
    assert len(decode(KafkaRecord(CONSUMER_OFFSETS, 0, 0, 0, key, value))) <= 1
