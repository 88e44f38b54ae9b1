"""Whatever the bytes, a decoder returns a value or raises DecodeError, and does so quickly."""

from __future__ import annotations

import itertools
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.errors import DecodeError
from caughtup.models.wire.assignment_info import decode_assignment_info
from caughtup.models.wire.consumer_offsets import decode_key, decode_offset_commit
from caughtup.models.wire.consumer_protocol import decode_assignment, decode_subscription
from caughtup.models.wire.group_metadata import decode_group_metadata
from caughtup.models.wire.subscription_info import decode_subscription_info
from tests.models.wire import strategies
from tests.models.wire.strategies import thorough
from tests.support import wire

FORMATS = {
    "offset key": (decode_key, strategies.offset_keys.map(wire.offset_key)),
    "group key": (decode_key, strategies.names.map(wire.group_key)),
    "offset commit": (
        decode_offset_commit,
        strategies.offset_commits().map(lambda drawn: wire.offset_commit(*drawn)),
    ),
    "group metadata": (
        decode_group_metadata,
        strategies.group_metadata().map(lambda drawn: wire.group_metadata(*drawn)),
    ),
    "subscription": (decode_subscription, strategies.subscriptions().map(wire.subscription)),
    "assignment": (decode_assignment, strategies.assignments.map(wire.assignment)),
    "subscription info": (
        decode_subscription_info,
        strategies.subscription_infos().map(wire.subscription_info),
    ),
    "assignment info": (
        decode_assignment_info,
        strategies.assignment_infos.map(wire.assignment_info),
    ),
}


def refusal(decode: Callable[[bytes], object], data: bytes) -> DecodeError | None:
    try:
        decode(data)
    except DecodeError as error:
        return error
    return None


every_format = pytest.mark.parametrize("name", FORMATS)


@every_format
@thorough
@given(st.data())
def test_a_record_cut_off_anywhere_is_refused(name, data):
    decode, valid = FORMATS[name]
    whole = data.draw(valid)
    with pytest.raises(DecodeError):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))])


@every_format
@thorough
@given(st.data())
def test_a_damaged_record_is_read_or_refused(name, data):
    decode, valid = FORMATS[name]
    damaged = bytearray(data.draw(valid))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    refused = refusal(decode, bytes(damaged))
    assert refused is None or "\n" not in str(refused)


@every_format
@thorough
@given(st.data())
def test_any_bytes_at_all_are_read_or_refused(name, data):
    decode, _ = FORMATS[name]
    version = data.draw(st.integers(-1, 12))
    start = data.draw(st.sampled_from([b"", wire.number("h", version), wire.number("i", version)]))
    refused = refusal(decode, start + data.draw(st.binary(max_size=80)))
    assert refused is None or "\n" not in str(refused)


@every_format
def test_claimed_sizes_make_nothing_of_that_size(name):
    decode, _ = FORMATS[name]
    huge = (b"\x7f\xff\xff\xff" * 4, b"\xff\xff\xff\xff\x07" * 4)
    starts = [wire.number(layout, version) for layout in ("h", "i") for version in range(12)]
    tracemalloc.start()
    try:
        for start, zeroes, claim in itertools.product(starts, range(60), huge):
            refusal(decode, start + bytes(zeroes) + claim)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000
