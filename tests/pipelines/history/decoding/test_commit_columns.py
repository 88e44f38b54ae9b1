"""Offset commits of a whole batch: which shapes are read at once, and what is said of the rest."""

from __future__ import annotations

import pyarrow as pa
import pytest

from caughtup.models.wire.consumer_offsets import OffsetKey, decode_key
from caughtup.pipelines.history.decoding import commit_columns
from caughtup.pipelines.history.decoding.commit_columns import decode_commit_columns
from tests.support import wire
from tests.support.pipelines.commit_batches import (
    COMMIT,
    KEY,
    LATEST_MS,
    NOW_MS,
    Expected,
    batch_of,
    commit,
    decode,
    one_by_one,
    record,
)


@pytest.fixture
def careful_rows(monkeypatch) -> list[bytes]:
    """The keys that were decoded one by one."""
    seen: list[bytes] = []

    def noted(key: bytes):
        seen.append(key)
        return decode_key(key)

    monkeypatch.setattr(commit_columns, "decode_key", noted)
    return seen


def test_plain_records_are_never_decoded_one_by_one(careful_rows):
    plain = [
        *(commit(version) for version in range(5)),
        *(commit(version, metadata="ünï-код-字-🙂") for version in range(5)),
        commit(metadata="m" * 4096, topic_id=None, leader_epoch=-1),
        commit(1, expire_timestamp_ms=NOW_MS + 1),
        commit(1, expire_timestamp_ms=-(1 << 63)),
        commit(key=OffsetKey("ünï", "字", 0)),
        commit(key=OffsetKey("", "", 0), metadata=""),
        record(wire.offset_key(KEY, 0), wire.offset_commit(COMMIT, 3) + b"left over"),
        record(wire.offset_key(KEY), None),
    ]
    assert decode(batch_of(plain)) == one_by_one(plain)
    assert careful_rows == []


@pytest.mark.parametrize("version", range(5))
def test_plain_records_of_one_version_are_never_decoded_one_by_one(careful_rows, version):
    plain = [commit(version, offset=n, metadata="m" * n) for n in range(200)]
    assert decode(batch_of(plain)) == one_by_one(plain)
    assert careful_rows == []


def test_only_what_is_not_plain_is_decoded_one_by_one(careful_rows):
    mixed = [commit(offset=1), record(wire.group_key("g"), b"?"), commit(offset=2)]
    commits, others, undecodable = decode(batch_of(mixed))
    assert ([row["committed"] for row in commits], others, undecodable) == ([1, 2], [1], [])
    assert careful_rows == [wire.group_key("g")]


V4 = wire.offset_commit(COMMIT, 4)
# Read with a length of two bytes, of which it has three, this ends in another time and no topic id.
LONG = COMMIT._replace(
    metadata="m" * 16_387 + "\0", commit_timestamp_ms=NOW_MS - NOW_MS % 256, topic_id=None
)


@pytest.mark.parametrize(
    "value",
    [
        wire.offset_commit(COMMIT, 4, {9: b"later"}),
        wire.offset_commit(COMMIT._replace(topic_id=None), 4, {9: b"0123456789abcdef"}),
        wire.offset_commit(COMMIT._replace(topic_id=None), 4, {9: b"a", 10: b"b"}),
        wire.offset_commit(LONG, 4),
        V4.replace(wire.uvarint(5) + b"seen", b"\x85\x00seen"),
        V4.replace(wire.uvarint(5) + b"seen", b"\x85\x80\x00seen"),
    ],
)
def test_a_commit_of_another_shape_that_the_models_accept_keeps_its_place(value):
    shaped = record(wire.offset_key(KEY), value)
    mixed = [commit(offset=1), shaped, commit(offset=2), shaped, record(None, None)]
    found = decode(batch_of(mixed))
    assert found == one_by_one(mixed)
    assert [row["committed"] for row in found.commits] == [1, 1041, 2, 1041]


@pytest.mark.parametrize("topic_id", [bytes(8) + b"01234567", b"01234567" + bytes(8)])
def test_a_topic_id_that_is_half_zeroes_is_one(topic_id):
    (row,) = decode(batch_of([commit(topic_id=topic_id)])).commits
    assert row["topic_id"] == topic_id


def test_a_topic_id_of_zeroes_is_null():
    (row,) = decode(batch_of([commit(topic_id=bytes(16))])).commits
    assert row["topic_id"] is None


def test_a_tombstone_has_its_records_time_and_none_of_the_values_fields():
    (row,) = decode(batch_of([record(wire.offset_key(KEY), None, at=5, time_ms=99)])).commits
    assert row == {
        "group": "billing",
        "topic": "orders",
        "partition": 3,
        "present": False,
        "committed": None,
        "leader_epoch": None,
        "metadata": None,
        "commit_time_ms": 99,
        "expire_time_ms": None,
        "topic_id": None,
        "log_partition": 7,
        "log_offset": 5,
        "record_time_ms": 99,
    }


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (record(None, b""), "no_key: a record without a key"),
        (record(b"", b""), "truncated: 2 bytes wanted at byte 0, 0 left"),
        (record(wire.offset_key(KEY) + b"\0", b""), "trailing: 1 bytes left over at byte 23"),
        (record(wire.offset_key(KEY)[:-1], b""), "truncated: 4 bytes wanted at byte 19, 3 left"),
        (record(wire.offset_key(KEY).replace(b"bil", b"\xc3\x28l"), b""), "bad_utf8"),
        (record(wire.number("h", 1) + wire.number("h", -4) + b"abc", b""), "bad_length"),
        (record(wire.offset_key(KEY), b""), "truncated: 2 bytes wanted at byte 0, 0 left"),
        (record(wire.offset_key(KEY), b"\0\5" + bytes(60)), "unknown_version: offset commit"),
        (
            record(wire.offset_key(KEY), b"\0\5" + V4[2:]),
            "unknown_version: offset commit version 5",
        ),
        (
            record(wire.offset_key(KEY), V4[:14] + b"\0" + V4[19:]),
            "bad_length: a string may not be",
        ),
        (record(wire.offset_key(KEY), V4[:14] + b"\xff" * 5 + V4[19:]), "bad_length: a varint"),
        (record(wire.offset_key(KEY), b"\xff\xff" + bytes(60)), "unknown_version: offset commit"),
        (record(wire.offset_key(KEY), wire.offset_commit(COMMIT, 4)[:-1]), "bad_length"),
        (commit(topic_id=b"short"), "bad_length: a topic id of 5 bytes"),
        (record(wire.offset_key(KEY), wire.offset_commit(COMMIT, 3)[:-1]), "truncated"),
        (commit(offset=-1), "out_of_range: offset -1"),
        (commit(0, offset=-(1 << 63)), "out_of_range: offset -9223372036854775808"),
        (commit(3, leader_epoch=-2), "out_of_range: leader epoch -2"),
        (commit(key=KEY._replace(partition=-1)), "out_of_range: partition -1"),
        (commit(key=KEY._replace(partition=10**9)), "out_of_range: partition 1000000000"),
        (commit(commit_timestamp_ms=-1), "bad_time: -1 ms is not a time since 1970"),
        (
            commit(3, commit_timestamp_ms=LATEST_MS + 1),
            "bad_time: 253402300800000 ms is not a time",
        ),
        (
            record(wire.offset_key(KEY), None, time_ms=-1),
            "bad_time: -1 ms is not a time since 1970",
        ),
    ],
)
def test_a_broken_record_says_why_and_costs_its_own_row_alone(broken, why):
    chosen = [commit(offset=1, metadata="字"), broken, commit(0, offset=2)]
    found = decode(batch_of(chosen))
    assert found == one_by_one(chosen)
    assert [row["committed"] for row in found.commits] == [1, 2]
    ((row, said),) = found.undecodable
    assert row == 1
    assert said.startswith(why)


@pytest.mark.parametrize("version", [0, 3, 4])
def test_metadata_that_is_not_utf8_costs_its_own_row_alone(version):
    good = commit(version, metadata="字")
    bad = good._replace(value=good.value.replace("字".encode(), b"\xed\xa0\x80"))  # a surrogate
    chosen = [good, bad, commit(), commit(metadata="")]
    found = decode(batch_of(chosen))
    assert found == one_by_one(chosen)
    assert [row for row, _ in found.undecodable] == [1]


def test_beside_what_is_not_utf8_only_what_is_not_ascii_is_decoded_one_by_one(careful_rows):
    keys = [wire.offset_key(OffsetKey(group, "orders", 0)) for group in ("a", "字", "b", "ü", "c")]
    keys[3] = keys[3].replace("ü".encode(), b"\xc3\x28")
    assert [row for row, _ in decode(batch_of([record(key, V4) for key in keys])).undecodable] == [
        3
    ]
    assert careful_rows == [keys[1], keys[3]]


def test_a_batch_of_nothing_but_nulls_holds_nothing():
    nulls = [record(None, None)] * 3
    assert decode(batch_of(nulls)) == one_by_one(nulls)


def test_an_empty_batch_has_the_columns_of_a_full_one():
    for empty in (batch_of([commit()]).slice(0, 0), batch_of([commit()]).slice(1)):
        assert decode(empty) == Expected([], [], [])
    made_empty = pa.RecordBatch.from_pylist([], schema=batch_of([commit()]).schema)
    assert decode(made_empty) == Expected([], [], [])


def test_bytes_that_a_null_stands_on_are_not_read():
    key = wire.offset_key(KEY)
    first, offsets, data = pa.array([True, False]), pa.array([0, len(key), 2 * len(key)]), 2 * key
    keys = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), 2, [first.buffers()[1], offsets.buffers()[1], pa.py_buffer(data)]
    )
    whole = batch_of([commit()] * 2).set_column(4, "key", keys)
    assert decode(whole) == one_by_one([commit(), commit()._replace(key=None)])


def test_a_column_that_holds_no_bytes_is_refused():
    whole = batch_of([commit()]).set_column(4, "key", pa.array(["text"]))
    with pytest.raises(TypeError, match="a column of string instead of bytes"):
        decode_commit_columns(whole)
