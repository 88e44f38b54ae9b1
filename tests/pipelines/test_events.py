"""Decoding the two topics' records into events."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from caughtup.pipelines.events import COMMIT, END_OFFSET, Event, Record, Undecodable, decode_events
from caughtup.pipelines.schema import END_OFFSETS_TOPIC

ENDS = {
    "schema": 1,
    "topic": "orders",
    "partition": 3,
    "start_offset": 1,
    "last_stable_offset": 90,
    "end_offset": 100,
    "as_of_ms": 5_000,
}


def string(text: str) -> bytes:
    return struct.pack(">h", len(text.encode())) + text.encode()


def commit_key(group: str = "billing", topic: str = "orders", partition: int = 3) -> bytes:
    return struct.pack(">h", 1) + string(group) + string(topic) + struct.pack(">i", partition)


def commit_value(offset: int, time_ms: int) -> bytes:
    return struct.pack(">hqi", 3, offset, -1) + string("") + struct.pack(">q", time_ms)


def commit(offset: int = 40, time_ms: int = 4_000, at: int = 7) -> Record:
    return Record(CONSUMER_OFFSETS, 2, at, 9_999, commit_key(), commit_value(offset, time_ms))


def end_offsets(**changes: object) -> Record:
    value = json.dumps(ENDS | changes).encode()
    return Record(END_OFFSETS_TOPIC, 0, 11, 9_999, b"orders-3", value)


def decode(*records: Record) -> list[Event | Undecodable]:
    return list(decode_events(records))


def test_a_commit_is_timed_by_itself_and_placed_by_its_record() -> None:
    assert decode(commit(offset=40, time_ms=4_000, at=7)) == [
        Event(COMMIT, "orders", 3, 2, 7, 4_000, group="billing", present=True, committed=40)
    ]


def test_every_commit_of_a_key_is_an_event() -> None:
    assert [event.committed for event in decode(commit(1), commit(2), commit(3))] == [1, 2, 3]


def test_a_deleted_commit_is_timed_by_its_record() -> None:
    record = Record(CONSUMER_OFFSETS, 2, 7, 9_999, commit_key(), None)
    assert decode(record) == [Event(COMMIT, "orders", 3, 2, 7, 9_999, group="billing")]


def test_group_metadata_and_later_key_types_make_no_event() -> None:
    keys = [struct.pack(">h", key_type) + string("billing") for key_type in (2, 3, 99)]
    assert decode(*(Record(CONSUMER_OFFSETS, 0, 0, 0, key, b"anything") for key in keys)) == []


def test_end_offsets_are_timed_by_when_they_were_seen() -> None:
    assert decode(end_offsets()) == [
        Event(
            END_OFFSET,
            "orders",
            3,
            0,
            11,
            5_000,
            present=True,
            start_offset=1,
            last_stable_offset=90,
            end_offset=100,
        )
    ]


def test_a_field_that_a_later_service_adds_is_no_error() -> None:
    assert decode(end_offsets(leader=4))[0].kind == END_OFFSET


def test_a_partition_that_is_gone_is_named_by_its_key() -> None:
    record = Record(END_OFFSETS_TOPIC, 0, 11, 9_999, b"a-dashed-topic-12", None)
    assert decode(record) == [Event(END_OFFSET, "a-dashed-topic", 12, 0, 11, 9_999)]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (Record(CONSUMER_OFFSETS, 2, 7, 0, None, b""), "without a key"),
        (Record(CONSUMER_OFFSETS, 2, 7, 0, b"\0", b""), ""),
        (Record(CONSUMER_OFFSETS, 2, 7, 0, commit_key(), b"\0\3\0"), ""),
        (Record(CONSUMER_OFFSETS, 2, 7, 0, commit_key(), b"\0\x63" + bytes(40)), "version 99"),
        (commit(time_ms=2**63 - 1), "bad_time"),
        (commit(time_ms=-1), "bad_time"),
        (end_offsets(schema=2), "schema 2"),
        (end_offsets(end_offset=-1), "end_offset"),
        (end_offsets(end_offset=2**63), ""),
        (end_offsets(end_offset="100"), "end_offset"),
        (end_offsets(partition=2**31), "partition"),
        (end_offsets(as_of_ms=2**62), "as_of_ms"),
        (Record(END_OFFSETS_TOPIC, 0, 11, 0, b"orders-3", b"\xff{"), ""),
        (Record(END_OFFSETS_TOPIC, 0, 11, 0, b"orders", None), "not a topic-partition"),
        (Record(END_OFFSETS_TOPIC, 0, 11, 0, b"\xff-3", None), ""),
        (Record(END_OFFSETS_TOPIC, 0, 11, 0, None, None), "without a key"),
    ],
)
def test_a_record_that_cannot_be_decoded_says_where_and_why_and_loses_nothing_else(
    record: Record, why: str
) -> None:
    before, error, after = decode(commit(1), record, commit(2))
    assert (before.committed, after.committed) == (1, 2)
    assert isinstance(error, Undecodable)
    assert error.record == record
    assert why in error.why
    assert str(error).startswith(f"{record.topic}-{record.partition} offset {record.offset}: ")
    assert len(str(error).splitlines()) == 1


@given(
    topic=st.sampled_from([CONSUMER_OFFSETS, END_OFFSETS_TOPIC]),
    key=st.none() | st.binary() | st.just(commit_key()),
    value=st.none() | st.binary(),
)
def test_no_bytes_at_all_break_the_decoder(
    topic: str, key: bytes | None, value: bytes | None
) -> None:
    assert len(decode(Record(topic, 0, 0, 0, key, value))) <= 1
