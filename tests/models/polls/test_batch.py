from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.errors import DecodeError
from caughtup.models.polls.batch import Batch, Record, decode_batch
from caughtup.models.wire.consumer_offsets import (
    GroupKey,
    OffsetCommit,
    OffsetKey,
    decode_key,
    decode_offset_commit,
)
from caughtup.models.wire.group_metadata import GroupMember, GroupMetadata, decode_group_metadata
from caughtup.models.wire.record_keys import RecordType, StreamsGroupKey
from caughtup.models.wire.streams_group_records import StreamsGroupMetadata
from tests.models.wire.new_group_strategies import (
    CONSUMER_GROUP_RECORDS,
    NEW_GROUP_KEYS,
    STREAMS_GROUP_RECORDS,
)
from tests.models.wire.strategies import thorough
from tests.support import wire
from tests.support.groups.new_group_encoders import new_group_key, new_group_record

ORDERS = OffsetKey("shop", "orders", 0)
PAYMENTS = OffsetKey("shop", "payments", 1)
METADATA = GroupMetadata("consumer", 3, None, None, 1_732_000_000_000, ())
UNKNOWN_VERSION = wire.number("h", 9) + bytes(30)


def commit(offset: int) -> OffsetCommit:
    return OffsetCommit(offset, 1, "", 1_732_000_000_000, -1, b"0123456789abcdef")


def record(key: OffsetKey, offset: int | None, key_type: int = 1) -> Record:
    value = None if offset is None else wire.offset_commit(commit(offset), 4)
    return wire.offset_key(key, key_type), value


def test_the_last_value_of_each_key_counts():
    batch = decode_batch([record(ORDERS, 1), record(PAYMENTS, 7), record(ORDERS, 2)])
    assert batch.commits.by_key() == {ORDERS: commit(2), PAYMENTS: commit(7)}
    assert batch.records == {1: 3}
    assert batch.skipped == {}
    assert batch.errors == {}


def test_tombstones_are_none_and_a_later_value_revives_the_key():
    group = wire.group_key("shop")
    batch = decode_batch(
        [record(ORDERS, 1), record(ORDERS, None), (group, None), record(PAYMENTS, None)]
    )
    assert batch.commits.by_key() == {ORDERS: None, PAYMENTS: None}
    assert batch.groups == {"shop": None}
    revived = decode_batch([record(ORDERS, None), record(ORDERS, 5)])
    assert revived.commits.by_key() == {ORDERS: commit(5)}


def test_groups_and_commits_are_read_from_the_same_batch():
    batch = decode_batch(
        [(wire.group_key("shop"), wire.group_metadata(METADATA, 3)), record(ORDERS, 4)]
    )
    assert batch.groups == {"shop": METADATA}
    assert batch.commits.by_key() == {ORDERS: commit(4)}
    assert batch.records == {1: 1, 2: 1}


@pytest.mark.parametrize(
    ("record_type", "values"), [*CONSUMER_GROUP_RECORDS.items(), *STREAMS_GROUP_RECORDS.items()]
)
@settings(thorough, max_examples=30)
@given(st.data())
def test_records_of_the_newer_protocols_are_kept_by_key_with_their_tombstones(
    record_type, values, data
):
    read, other = (
        ("consumer_group_records", "streams_group_records")
        if record_type in CONSUMER_GROUP_RECORDS
        else ("streams_group_records", "consumer_group_records")
    )
    keys = data.draw(st.lists(NEW_GROUP_KEYS[record_type], min_size=2, max_size=2, unique=True))
    early, late = data.draw(values), data.draw(values)
    first, second = map(new_group_key, keys)
    written = [(first, early), (second, early), (first, late), (second, None)]
    batch = decode_batch(
        [(key, None if value is None else new_group_record(value)) for key, value in written]
    )
    assert getattr(batch, read) == {keys[0]: late, keys[1]: None}
    assert getattr(batch, other) == {}
    assert (batch.records, batch.skipped, batch.errors) == ({record_type: 4}, {}, {})


def test_a_value_of_a_newer_version_leaves_its_key_with_the_last_one_that_is_known():
    key = StreamsGroupKey(RecordType.STREAMS_GROUP_METADATA, "shop")
    known, raw = StreamsGroupMetadata(5, 9, 1, {}, -1, -1), new_group_key(key)
    newer = wire.number("h", 1) + bytes(20)
    batch = decode_batch([(raw, new_group_record(known)), (raw, newer), record(ORDERS, 1)])
    assert batch.streams_group_records == {key: known}
    assert batch.commits.by_key() == {ORDERS: commit(1)}
    assert batch.errors == {(17, "unknown_version"): 1}
    assert "shop" in batch.samples[0]


def test_a_connect_groups_own_protocol_stays_bytes():
    worker = GroupMember(
        "connect-1", None, "c", "/127", 60_000, 10_000, b"\0\2\0\x0fhttp://w1:8083/", b"\0\2"
    )
    connect = GroupMetadata("connect", 3, "sessioned", "connect-1", 1_732_000_000_000, (worker,))
    batch = decode_batch([(wire.group_key("connect"), wire.group_metadata(connect, 3))])
    assert batch.groups == {"connect": connect}
    assert batch.errors == {}


def test_both_types_of_an_offset_key_are_one_key_in_log_order():
    batch = decode_batch([record(ORDERS, 1, 0), record(ORDERS, 2, 1), record(ORDERS, 3, 0)])
    assert batch.commits.by_key() == {ORDERS: commit(3)}
    assert batch.records == {0: 2, 1: 1}
    assert decode_batch([record(ORDERS, 1, 0), record(ORDERS, 2, 1)]).commits.by_key() == {
        ORDERS: commit(2)
    }


def test_other_key_types_are_counted_and_skipped():
    others = [(wire.number("h", key_type) + b"x", b"y") for key_type in (9, 15, 15, 25, -4)]
    batch = decode_batch([*others, record(ORDERS, 1)])
    assert batch.records == {-4: 1, 1: 1, 9: 1, 15: 2, 25: 1}
    assert batch.skipped == {-4: 1, 9: 1, 15: 2, 25: 1}
    assert batch.commits.by_key() == {ORDERS: commit(1)}
    assert batch.errors == {}


def test_broken_records_are_counted_by_type_and_code_and_the_next_ones_are_read():
    broken = [
        (None, b"value"),
        (b"", b"value"),
        (b"\x00", None),
        (wire.offset_key(ORDERS)[:-1], None),
        (wire.offset_key(PAYMENTS) + b"\x00", None),
        (wire.offset_key(PAYMENTS), UNKNOWN_VERSION),
        (wire.group_key("shop"), b""),
    ]
    batch = decode_batch([*broken, record(ORDERS, 1)])
    assert batch.commits.by_key() == {ORDERS: commit(1)}
    assert batch.groups == {}
    assert batch.errors == {
        (None, "truncated"): 3,
        (1, "truncated"): 1,
        (1, "trailing"): 1,
        (1, "unknown_version"): 1,
        (2, "truncated"): 1,
    }


def test_a_sample_of_the_errors_names_the_key_on_one_line():
    named = OffsetKey("shop\nfloor", "orders", 0)
    broken = [(wire.offset_key(named._replace(partition=n)), UNKNOWN_VERSION) for n in range(20)]
    batch = decode_batch(broken)
    assert batch.errors == {(1, "unknown_version"): 20}
    assert 0 < len(batch.samples) < 20
    assert "orders" in batch.samples[0]
    assert "unknown_version" in batch.samples[0]
    assert not any("\n" in sample for sample in batch.samples)


def test_a_value_that_cannot_be_read_leaves_the_last_one_that_can():
    broken = (wire.offset_key(ORDERS), UNKNOWN_VERSION)
    batch = decode_batch(
        [record(ORDERS, 1), record(ORDERS, 2), broken, record(PAYMENTS, 1), broken]
    )
    assert batch.commits.by_key() == {ORDERS: commit(2), PAYMENTS: commit(1)}
    assert batch.errors == {(1, "unknown_version"): 2}


def test_records_may_come_from_an_iterator_and_may_be_none_at_all():
    assert decode_batch(iter([record(ORDERS, 1)])).commits.by_key() == {ORDERS: commit(1)}
    assert decode_batch([]).commits.by_key() == Batch().commits.by_key() == {}
    assert decode_batch([]).records == {}


keys = st.sampled_from(
    [
        *(wire.offset_key(key, key_type) for key in (ORDERS, PAYMENTS) for key_type in (0, 1)),
        wire.group_key("shop"),
        wire.group_key("")[:-1],
        wire.number("h", 17),
        b"",
        None,
    ]
)
values = st.one_of(
    st.none(),
    st.just(UNKNOWN_VERSION),
    st.binary(max_size=4),
    st.integers(0, 99).map(lambda offset: wire.offset_commit(commit(offset), 3 + offset % 2)),
    st.integers(0, 99).map(lambda n: wire.group_metadata(METADATA, 2 + n % 3)),
)


def one_by_one(records: list[Record]) -> tuple[dict[object, object], Counter[int]]:
    """Read the records singly: what decode_batch has to come to."""
    state: dict[object, object] = {}
    key_types: Counter[int] = Counter()
    for key, value in records:
        if key is None or len(key) < 2:
            continue
        key_types[int.from_bytes(key[:2], signed=True)] += 1
        try:
            decoded = decode_key(key)
            if isinstance(decoded, OffsetKey):
                state[decoded] = None if value is None else decode_offset_commit(value)
            elif isinstance(decoded, GroupKey):
                state[decoded.group] = None if value is None else decode_group_metadata(value)
        except DecodeError:
            continue
    return state, key_types


@thorough
@given(st.lists(st.tuples(keys, values), max_size=25), st.lists(st.integers(0, 25), max_size=3))
def test_what_batches_change_does_not_depend_on_where_they_are_cut(records, cuts):
    state: dict[object, object] = {}
    key_types: Counter[int] = Counter()
    edges = [0, *sorted(cuts), len(records)]
    for start, end in itertools.pairwise(edges):
        batch = decode_batch(records[start:end])
        state |= batch.commits.by_key()
        state |= batch.groups
        key_types += Counter(batch.records)
    assert (state, key_types) == one_by_one(records)
