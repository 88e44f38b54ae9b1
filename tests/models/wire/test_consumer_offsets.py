from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.errors import DecodeError
from caughtup.models.wire import consumer_offsets
from caughtup.models.wire.consumer_offsets import (
    GroupKey,
    OffsetCommit,
    OffsetKey,
    OtherKey,
    decode_key,
    decode_offset_commit,
)
from tests.models.wire.strategies import names, offset_commits, offset_keys, thorough, unknown_tags
from tests.support import wire

COMMIT = OffsetCommit(1041, 7, "", 1_732_000_000_000, -1, b"0123456789abcdef")


def code_of(decode, data: bytes) -> str:
    with pytest.raises(DecodeError) as failure:
        decode(data)
    return failure.value.code


@thorough
@given(offset_keys, st.sampled_from([0, 1]))
def test_both_key_types_of_a_committed_offset_read_back(key, key_type):
    assert decode_key(wire.offset_key(key, key_type)) == key


@thorough
@given(names)
def test_a_groups_key_reads_back(group):
    assert decode_key(wire.group_key(group)) == GroupKey(group)


@thorough
@given(st.integers(25, 32767) | st.integers(-32768, -1), st.binary(max_size=20))
def test_every_other_key_type_is_named_and_its_rest_is_left_alone(key_type, rest):
    assert decode_key(wire.number("h", key_type) + rest) == OtherKey(key_type)


@pytest.mark.parametrize("key", [wire.offset_key(OffsetKey("g", "orders", 3)), wire.group_key("g")])
def test_a_key_with_bytes_left_over_is_refused(key):
    assert code_of(decode_key, key + b"\x00") == "trailing"


def test_a_keys_names_are_shared_between_the_keys_that_hold_them():
    first = decode_key(wire.offset_key(OffsetKey("shop", "orders", 0)))
    second = decode_key(wire.offset_key(OffsetKey("shop", "orders", 1)))
    assert isinstance(first, OffsetKey)
    assert isinstance(second, OffsetKey)
    assert first.group is second.group
    assert first.topic is second.topic


@thorough
@given(offset_commits())
def test_a_committed_offset_reads_back_in_every_version(commit_and_version):
    commit, version = commit_and_version
    assert decode_offset_commit(wire.offset_commit(commit, version)) == commit


@thorough
@given(offset_commits(), unknown_tags, st.binary(max_size=5))
def test_unknown_tagged_fields_and_bytes_left_over_change_nothing(
    commit_and_version, tags, left_over
):
    commit, version = commit_and_version
    assert decode_offset_commit(wire.offset_commit(commit, version, tags) + left_over) == commit


def test_a_topic_id_of_zeroes_is_none():
    zeroes = COMMIT._replace(topic_id=bytes(16))
    for tags in ({}, {9: b"later"}):
        assert decode_offset_commit(wire.offset_commit(zeroes, 4, tags)).topic_id is None


def test_a_topic_id_of_another_length_is_refused():
    data = wire.offset_commit(COMMIT._replace(topic_id=b"short"), 4)
    assert code_of(decode_offset_commit, data) == "bad_length"


@pytest.mark.parametrize("version", [-1, 5, 32767])
def test_a_version_that_is_not_known_is_refused(version):
    data = wire.number("h", version) + wire.offset_commit(COMMIT, 4)[2:]
    assert code_of(decode_offset_commit, data) == "unknown_version"


@pytest.mark.parametrize("version", [3, 4])
def test_metadata_that_is_not_utf8_is_refused(version):
    data = wire.offset_commit(COMMIT._replace(metadata="??"), version)
    assert code_of(decode_offset_commit, data.replace(b"??", b"\xc3\x28")) == "bad_utf8"


@pytest.mark.parametrize("version", range(5))
def test_metadata_may_be_empty_but_not_null(version):
    empty = wire.offset_commit(COMMIT, version)
    null_length, flexible = wire.length(None, "h", version >= 4), version >= 4
    at = 2 + 8 + (4 if version >= 3 else 0)
    assert empty[at:].startswith(wire.string("", flexible))
    null = empty[:at] + null_length + empty[at + len(null_length) :]
    assert decode_offset_commit(empty).metadata == ""
    assert code_of(decode_offset_commit, null + bytes(9)) == "bad_length"


def test_long_metadata_that_looks_like_the_end_of_a_shorter_commit_is_read_whole():
    # Read as one byte, the two-byte length would end the metadata right before these bytes.
    long = COMMIT._replace(metadata="x" * 166 + "\x01\x00\x10" + "y" * 118)
    assert decode_offset_commit(wire.offset_commit(long, 4)) == long


def test_null_metadata_before_what_looks_like_a_topic_id_is_refused():
    head = wire.offset_commit(COMMIT, 4)[:14]
    tags = wire.tagged_fields({0: b"0123456789abcdef"})
    null = head + wire.length(None, "h", flexible=True) + bytes(7) + tags
    assert code_of(decode_offset_commit, null) == "bad_length"


@pytest.mark.parametrize(
    "names",
    [
        wire.number("h", -4) + b"abc",
        wire.number("h", -6) + wire.number("h", 2),
        wire.string("g") + wire.number("h", -4),
    ],
)
def test_a_key_whose_names_have_negative_lengths_is_refused(names):
    assert code_of(decode_key, wire.number("h", 1) + names) == "bad_length"


@thorough
@given(offset_commits(), st.data())
def test_the_quick_reading_of_a_commit_never_differs_from_the_careful_one(commit_and_version, data):
    raw = bytearray(wire.offset_commit(*commit_and_version))
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    quick = consumer_offsets.quick_offset_commit(bytes(raw))
    if quick is not None:
        assert quick == consumer_offsets._any_offset_commit(bytes(raw))


@thorough
@given(offset_keys, st.data())
def test_the_quick_reading_of_a_key_never_differs_from_the_careful_one(key, data):
    raw = bytearray(wire.offset_key(key))
    for _ in range(data.draw(st.integers(0, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    quick = consumer_offsets.quick_offset_key(bytes(raw))
    if quick is not None:
        assert quick == consumer_offsets._any_key(bytes(raw))


def test_what_brokers_write_takes_the_quick_way():
    assert consumer_offsets.quick_offset_key(wire.offset_key(OffsetKey("g", "t", 0)))
    for version in (3, 4):
        assert consumer_offsets.quick_offset_commit(wire.offset_commit(COMMIT, version))


def test_names_that_were_forgotten_are_read_again(monkeypatch):
    monkeypatch.setattr(consumer_offsets, "_NAMES_KEPT", 3)
    keys = [OffsetKey(f"group-{n % 7}", f"topic-{n % 5}", n) for n in range(100)]
    assert [decode_key(wire.offset_key(key)) for key in keys] == keys
    assert len(consumer_offsets._NAMES) <= 3
