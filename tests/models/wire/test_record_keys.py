from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.errors import DecodeError
from caughtup.models.wire.consumer_offsets import decode_key
from caughtup.models.wire.record_keys import (
    ConsumerGroupKey,
    ConsumerGroupRegularExpressionKey,
    RecordType,
    ShareGroupMemberKey,
    StreamsGroupKey,
    StreamsGroupMemberKey,
)
from tests.models.wire.new_group_strategies import NEW_GROUP_KEYS
from tests.models.wire.strategies import thorough
from tests.support import wire
from tests.support.groups.new_group_encoders import new_group_key


def test_every_type_from_0_to_24_has_a_name():
    assert list(RecordType) == list(range(25))


@pytest.mark.parametrize("record_type", NEW_GROUP_KEYS)
@thorough
@given(st.data())
def test_a_key_of_each_type_reads_back(record_type, data):
    key = data.draw(NEW_GROUP_KEYS[record_type])
    read = decode_key(new_group_key(key))
    assert (type(read), read) == (type(key), key)


@pytest.mark.parametrize(
    ("key", "raw"),
    [
        (
            StreamsGroupMemberKey(RecordType.STREAMS_GROUP_MEMBER_METADATA, "shop", "m-1"),
            b"\x00\x13\x00\x04shop\x00\x03m-1",
        ),
        (StreamsGroupKey(RecordType.STREAMS_GROUP_TOPOLOGY, "shop"), b"\x00\x17\x00\x04shop"),
        (
            ConsumerGroupRegularExpressionKey(
                RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, "shop", "order.*"
            ),
            b"\x00\x10\x00\x04shop\x00\x07order.*",
        ),
        (
            ShareGroupMemberKey(RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT, "shop", "m-1"),
            b"\x00\x0e\x00\x04shop\x00\x03m-1",
        ),
    ],
)
def test_keys_written_out_by_hand_are_read(key, raw):
    assert decode_key(raw) == key
    assert new_group_key(key) == raw


@pytest.mark.parametrize("record_type", NEW_GROUP_KEYS)
@thorough
@given(st.data())
def test_a_key_with_bytes_left_over_or_missing_is_refused(record_type, data):
    whole = new_group_key(data.draw(NEW_GROUP_KEYS[record_type]))
    with pytest.raises(DecodeError, match="trailing"):
        decode_key(whole + b"\x00")
    with pytest.raises(DecodeError):
        decode_key(whole[: data.draw(st.integers(0, len(whole) - 1))])


def test_keys_of_different_types_differ_even_where_their_names_do_not():
    keys = [
        decode_key(wire.number("h", record_type) + wire.string("shop"))
        for record_type in (3, 4, 6, 9, 11, 12, 15, 17, 18, 20, 23, 24)
    ]
    assert all(one != other for one, other in itertools.combinations(keys, 2))
    assert ConsumerGroupKey(RecordType.CONSUMER_GROUP_METADATA, "shop") in keys
