"""Decoding records of the end-offsets topic."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.pipelines.events import EndOffsetEvent, KafkaRecord, Undecodable, decode_end_offsets
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


def end_offsets(**changes: object) -> KafkaRecord:
    value = json.dumps(ENDS | changes).encode()
    return KafkaRecord(END_OFFSETS_TOPIC, 0, 11, 9_999, b"orders-3", value)


def decode(*records: KafkaRecord) -> list[EndOffsetEvent | Undecodable]:
    return list(decode_end_offsets(records))


def test_end_offsets_are_timed_by_when_they_were_seen() -> None:
    assert decode(end_offsets()) == [
        EndOffsetEvent(
            "orders",
            3,
            11,
            5_000,
            present=True,
            start_offset=1,
            last_stable_offset=90,
            end_offset=100,
        )
    ]


def test_a_field_that_a_later_service_adds_is_no_error() -> None:
    assert decode(end_offsets(leader=4)) == decode(end_offsets())


def test_a_partition_that_is_gone_is_named_by_its_key() -> None:
    record = KafkaRecord(END_OFFSETS_TOPIC, 0, 11, 9_999, b"a-dashed-topic-12", None)
    assert decode(record) == [EndOffsetEvent("a-dashed-topic", 12, 11, 9_999)]


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (end_offsets(schema=2), "schema 2"),
        (end_offsets(end_offset=-1), "end_offset"),
        (end_offsets(end_offset=2**63), ""),
        (end_offsets(end_offset="100"), "end_offset"),
        (end_offsets(partition=2**31), "partition"),
        (end_offsets(as_of_ms=2**62), "as_of_ms"),
        (KafkaRecord(END_OFFSETS_TOPIC, 0, 11, 0, b"orders-3", b"\xff{"), ""),
        (KafkaRecord(END_OFFSETS_TOPIC, 0, 11, 0, b"orders", None), "not a topic-partition"),
        (KafkaRecord(END_OFFSETS_TOPIC, 0, 11, 0, b"\xff-3", None), ""),
        (KafkaRecord(END_OFFSETS_TOPIC, 0, 11, 0, None, None), "without a key"),
        (end_offsets(as_of_ms=-1), "as_of_ms"),
    ],
)
def test_a_record_that_cannot_be_decoded_says_where_and_why_and_loses_nothing_else(
    record: KafkaRecord, why: str
) -> None:
    before, error, after = decode(end_offsets(end_offset=91), record, end_offsets(end_offset=92))
    assert [getattr(event, "end_offset", None) for event in (before, after)] == [91, 92]
    assert isinstance(error, Undecodable)
    assert error.record == record
    assert why in error.why
    assert str(error).startswith(f"{record.topic}-{record.partition} offset {record.offset}: ")
    assert len(str(error).splitlines()) == 1


@given(key=st.none() | st.binary(), value=st.none() | st.binary())
def test_no_bytes_at_all_break_the_decoder(key: bytes | None, value: bytes | None) -> None:
    assert len(decode(KafkaRecord(END_OFFSETS_TOPIC, 0, 0, 0, key, value))) == 1
