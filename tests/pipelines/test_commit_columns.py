"""Offset commits of a whole batch are what the models' decoders say of each record."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.errors import DecodeError
from caughtup.models.wire.consumer_offsets import (
    OffsetCommit,
    OffsetKey,
    decode_key,
    decode_offset_commit,
)
from caughtup.pipelines import commit_records
from caughtup.pipelines.commit_columns import COMMIT_COLUMNS, decode_commit_columns
from caughtup.pipelines.events import Event, Record, Undecodable, decode_events
from tests.models.wire import strategies
from tests.models.wire.strategies import thorough
from tests.support import wire

LATEST_MS = 253_402_300_799_999  # the end of the year 9999
NOW_MS = 1_732_000_000_000
KEY = OffsetKey("billing", "orders", 3)
COMMIT = OffsetCommit(1041, 7, "seen", NOW_MS, -1, b"0123456789abcdef")


class Expected(NamedTuple):
    commits: list[dict[str, object]]
    others: list[int]
    undecodable: list[tuple[int, str]]


def record(key: bytes | None, value: bytes | None, at: int = 0, time_ms: int = NOW_MS) -> Record:
    return Record("__consumer_offsets", 7, at, time_ms, key, value)


def commit(version: int = 4, key: OffsetKey = KEY, **changes: object) -> Record:
    value = wire.offset_commit(COMMIT._replace(**changes), version)
    return record(wire.offset_key(key), value)


def batch_of(records: list[Record], bytes_type: pa.DataType | None = None) -> pa.RecordBatch:
    topic, partition, offset, time_ms, key, value = zip(*records, strict=True) or ((),) * 6
    raw = pa.binary() if bytes_type is None else bytes_type
    return pa.RecordBatch.from_arrays(
        [
            pa.array(topic, pa.string()),
            pa.array(partition, pa.int32()),
            pa.array(offset, pa.int64()),
            pa.array(time_ms, pa.int64()),
            pa.array(key, raw),
            pa.array(value, raw),
        ],
        names=list(Record._fields),
    )


def known(number: int) -> int | None:
    return None if number == -1 else number


def one_by_one(records: list[Record]) -> Expected:
    """What the records say, by the models' decoders alone."""
    expected = Expected([], [], [])
    for row, (_, log_partition, log_offset, record_ms, raw_key, raw_value) in enumerate(records):
        try:
            if raw_key is None:
                raise DecodeError("no_key", "a record without a key")
            key = decode_key(raw_key)
            if not isinstance(key, OffsetKey):
                expected.others.append(row)
                continue
            value = None if raw_value is None else decode_offset_commit(raw_value)
            time_ms = record_ms if value is None else value.commit_timestamp_ms
            if not 0 <= time_ms <= LATEST_MS:
                raise DecodeError("bad_time", f"{time_ms} ms is no time since 1970")
        except DecodeError as error:
            expected.undecodable.append((row, str(error)))
            continue
        expected.commits.append(
            {
                **key._asdict(),
                "present": value is not None,
                "committed": value and value.offset,
                "leader_epoch": value and known(value.leader_epoch),
                "metadata": None if value is None else value.metadata,
                "commit_time_ms": time_ms,
                "expire_time_ms": value and known(value.expire_timestamp_ms),
                "topic_id": value and value.topic_id,
                "log_partition": log_partition,
                "log_offset": log_offset,
                "record_time_ms": record_ms,
            }
        )
    return expected


def decode(batch: pa.RecordBatch) -> Expected:
    commits, others, undecodable = decode_commit_columns(batch)
    commits.validate(full=True)
    assert commits.schema == COMMIT_COLUMNS
    return Expected(commits.to_pylist(), others.tolist(), undecodable)


times = st.integers(0, LATEST_MS) | strategies.int64 | st.sampled_from([0, LATEST_MS, -1])
texts = st.text(max_size=8) | st.text("az09-", max_size=40)


@st.composite
def values(draw: st.DrawFn) -> bytes:
    written, version = draw(strategies.offset_commits())
    written = written._replace(
        commit_timestamp_ms=draw(times),
        expire_timestamp_ms=draw(st.just(-1) | times) if version == 1 else -1,
        metadata=draw(texts | st.text("m", min_size=100, max_size=300)),
    )
    tags = draw(st.just({}) | strategies.unknown_tags)
    return wire.offset_commit(written, version, tags) + draw(st.just(b"") | st.binary(max_size=3))


@st.composite
def damaged(draw: st.DrawFn, whole: st.SearchStrategy[bytes]) -> bytes:
    raw = bytearray(draw(whole))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(raw)))
        if draw(st.booleans()):
            del raw[at:]
        else:
            raw[at : at + 1] = draw(st.binary(min_size=1, max_size=3))
    return bytes(raw)


commit_keys = st.builds(
    wire.offset_key,
    st.builds(OffsetKey, texts, texts, strategies.int32),
    st.sampled_from([1, 1, 0]),
)
other_keys = texts.map(wire.group_key) | st.builds(
    lambda key_type, rest: wire.number("h", key_type) + rest,
    st.integers(-3, 30),
    st.binary(max_size=9),
)
records = st.builds(
    Record,
    st.just("__consumer_offsets"),
    strategies.partitions,
    st.integers(0, 2**63 - 1),
    times,
    # Mostly what is plain, so that what isn't stands among it.
    commit_keys | commit_keys | damaged(commit_keys) | other_keys | st.none(),
    values() | values() | damaged(values()) | st.none() | st.binary(max_size=40),
)
byte_types = st.sampled_from(
    [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int32(), pa.binary())]
)


@thorough
@given(st.lists(records, max_size=12), byte_types, st.integers(0, 3), st.integers(0, 3))
def test_a_batch_says_what_its_records_say_one_by_one(chosen, bytes_type, before, after):
    plain = [commit()]
    whole = batch_of(plain * before + chosen + plain * after or plain, bytes_type)
    assert decode(whole.slice(before, len(chosen))) == one_by_one(chosen)


@thorough
@given(st.lists(records, min_size=1, max_size=12))
def test_a_batch_holds_the_events_that_are_made_record_by_record(chosen):
    events = list(decode_events(chosen))
    commits, _, undecodable = decode(batch_of(chosen))
    assert [f"{chosen[row].offset}: {why}" for row, why in undecodable] == [
        f"{event.record.offset}: {event.why}" for event in events if isinstance(event, Undecodable)
    ]
    assert [
        Event(
            "commit",
            row["topic"],
            row["partition"],
            row["log_partition"],
            row["log_offset"],
            row["commit_time_ms"],
            group=row["group"],
            present=row["present"],
            committed=row["committed"] or 0,
        )
        for row in commits
    ] == [event for event in events if isinstance(event, Event)]


@pytest.fixture
def careful_rows(monkeypatch) -> list[bytes]:
    """The keys that were decoded one by one."""
    seen: list[bytes] = []

    def noted(key: bytes):
        seen.append(key)
        return decode_key(key)

    monkeypatch.setattr(commit_records, "decode_key", noted)
    return seen


def test_plain_records_are_never_decoded_one_by_one(careful_rows):
    plain = [
        *(commit(version) for version in range(5)),
        *(commit(version, metadata="ünï-код-字-🙂") for version in range(5)),
        commit(metadata="m" * 4096, topic_id=None, leader_epoch=-1),
        commit(1, expire_timestamp_ms=NOW_MS + 1),
        commit(key=OffsetKey("ünï", "字", -1)),
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


def test_a_commit_that_takes_the_careful_way_keeps_its_place():
    tags = record(wire.offset_key(KEY), wire.offset_commit(COMMIT, 4, {9: b"later"}))
    mixed = [commit(offset=1), tags, commit(offset=2), tags, record(None, None)]
    commits = decode(batch_of(mixed)).commits
    assert [row["committed"] for row in commits] == [1, 1041, 2, 1041]


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
        (record(wire.offset_key(KEY), b"\xff\xff" + bytes(60)), "unknown_version: offset commit"),
        (record(wire.offset_key(KEY), wire.offset_commit(COMMIT, 4)[:-1]), "bad_length"),
        (commit(topic_id=b"short"), "bad_length: a topic id of 5 bytes"),
        (record(wire.offset_key(KEY), wire.offset_commit(COMMIT, 3)[:-1]), "truncated"),
        (commit(commit_timestamp_ms=-1), "bad_time: -1 ms is no time since 1970"),
        (commit(3, commit_timestamp_ms=LATEST_MS + 1), "bad_time: 253402300800000 ms is no time"),
        (record(wire.offset_key(KEY), None, time_ms=-1), "bad_time: -1 ms is no time since 1970"),
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
    found = decode(batch_of([good, bad, commit()]))
    assert found == one_by_one([good, bad, commit()])
    assert [row for row, _ in found.undecodable] == [1]


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
    with pytest.raises(TypeError, match="a column of string, not of bytes"):
        decode_commit_columns(whole)
