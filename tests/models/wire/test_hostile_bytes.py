"""Whatever the bytes, a decoder returns a value or raises DecodeError, and does so quickly.

CAUGHTUP_HOSTILE_BYTES is how many byte strings the fuzzing makes in all (10,000 unless given).
"""

from __future__ import annotations

import itertools
import os
import tracemalloc
from collections.abc import Callable
from functools import partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caughtup.models.errors import DecodeError
from caughtup.models.polls.batch import decode_batch
from caughtup.models.wire.connect_protocol import decode_worker_assignment, decode_worker_state
from caughtup.models.wire.consumer_group_records import decode_consumer_group_record
from caughtup.models.wire.consumer_offsets import (
    OffsetCommit,
    OffsetKey,
    decode_key,
    decode_offset_commit,
)
from caughtup.models.wire.group_metadata import (
    decode_assignment,
    decode_group_metadata,
    decode_subscription,
)
from caughtup.models.wire.record_keys import RecordType
from caughtup.models.wire.streams_group_records import decode_streams_group_record
from caughtup.models.wire.user_data import decode_assignment_info, decode_subscription_info
from tests.models.wire import strategies
from tests.models.wire.connect_encoders import worker_assignment, worker_state
from tests.models.wire.connect_strategies import worker_assignments, worker_states
from tests.models.wire.new_group_strategies import (
    CONSUMER_GROUP_RECORDS,
    NEW_GROUP_KEYS,
    STREAMS_GROUP_RECORDS,
)
from tests.models.wire.strategies import thorough
from tests.models.wire.streams_encoders import assignment_info, subscription_info
from tests.support import wire
from tests.support.damage import damaged
from tests.support.groups.new_group_encoders import new_group_key, new_group_record

#: By name: what decodes, what makes valid bytes, and the type of the record whose value it is.
Format = tuple[Callable[[bytes], object], st.SearchStrategy[bytes], int | None]


def new_group_format(record_type: RecordType) -> Format:
    if record_type in CONSUMER_GROUP_RECORDS:
        values, decode = CONSUMER_GROUP_RECORDS[record_type], decode_consumer_group_record
    else:
        values, decode = STREAMS_GROUP_RECORDS[record_type], decode_streams_group_record
    return partial(decode, record_type), values.map(new_group_record), record_type


FORMATS: dict[str, Format] = {
    "offset key": (decode_key, strategies.offset_keys.map(wire.offset_key), None),
    "group key": (decode_key, strategies.names.map(wire.group_key), None),
    "new group key": (decode_key, st.one_of(*NEW_GROUP_KEYS.values()).map(new_group_key), None),
    "offset commit": (
        decode_offset_commit,
        strategies.offset_commits().map(lambda drawn: wire.offset_commit(*drawn)),
        1,
    ),
    "group metadata": (
        decode_group_metadata,
        strategies.group_metadata().map(lambda drawn: wire.group_metadata(*drawn)),
        2,
    ),
    "subscription": (decode_subscription, strategies.subscriptions().map(wire.subscription), None),
    "assignment": (decode_assignment, strategies.assignments.map(wire.assignment), None),
    "subscription info": (
        decode_subscription_info,
        strategies.subscription_infos().map(subscription_info),
        None,
    ),
    "assignment info": (
        decode_assignment_info,
        strategies.assignment_infos().map(assignment_info),
        None,
    ),
    "Connect subscription": (decode_worker_state, worker_states().map(worker_state), None),
    "Connect assignment": (
        decode_worker_assignment,
        worker_assignments().map(worker_assignment),
        None,
    ),
    **{
        record_type.name: new_group_format(record_type)
        for record_type in (*CONSUMER_GROUP_RECORDS, *STREAMS_GROUP_RECORDS)
    },
}
BYTE_STRINGS = int(os.environ.get("CAUGHTUP_HOSTILE_BYTES", "10000"))
STRINGS_PER_EXAMPLE = 50
EXAMPLES_PER_FORMAT = -(-BYTE_STRINGS // (STRINGS_PER_EXAMPLE * len(FORMATS)))
GOOD = OffsetKey("shop", "orders", 0)
GOOD_COMMIT = OffsetCommit(7, 1, "", 1_732_000_000_000, -1, None)


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
    decode, valid, _ = FORMATS[name]
    whole = data.draw(valid)
    with pytest.raises(DecodeError):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))])


@every_format
def test_claimed_sizes_make_nothing_of_that_size(name):
    decode, _, _ = FORMATS[name]
    huge = (b"\x7f\xff\xff\xff" * 4, b"\xff\xff\xff\xff\x07" * 4)
    starts = [wire.number(layout, version) for layout in ("h", "i") for version in range(12)]
    peaks = []
    for _ in range(2):  # Python's own table of interned strings may happen to grow once meanwhile
        tracemalloc.start()
        try:
            for start, zeroes, claim in itertools.product(starts, range(60), huge):
                refusal(decode, start + bytes(zeroes) + claim)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert min(peaks) < 1_000_000


@every_format
@settings(print_blob=True, deadline=None, max_examples=EXAMPLES_PER_FORMAT)
@given(st.data(), st.integers(0, 2**32 - 1))
def test_hostile_bytes_cost_their_own_record_alone(name, data, seed):
    decode, valid, record_type = FORMATS[name]
    random = Random(seed)
    whole = data.draw(valid)
    strings = [damaged(random, whole) for _ in range(STRINGS_PER_EXAMPLE)]
    refused = [refusal(decode, raw) for raw in strings]
    assert not any(error and "\n" in str(error) for error in refused)
    if decode is not decode_key and record_type is None:
        return
    # The same bytes as keys or as values of as many keys, and then a record that is well-formed.
    records = [
        (raw, None) if record_type is None else (key_of(record_type, number), raw)
        for number, raw in enumerate(strings)
    ]
    good = (wire.offset_key(GOOD), wire.offset_commit(GOOD_COMMIT, 3))
    batch = decode_batch([*records, good])
    assert batch.commits.by_key()[GOOD] == GOOD_COMMIT
    if record_type is not None:
        assert sum(batch.errors.values()) == sum(error is not None for error in refused)
        assert sum(batch.records.values()) == len(strings) + 1


def key_of(record_type: int, number: int) -> bytes:
    """A key of this type, another one for each number."""
    name = f"group-{number}"
    if record_type == RecordType.OFFSET_COMMIT:
        return wire.offset_key(OffsetKey(name, "orders", 1))
    key = wire.number("h", record_type) + wire.string(name)
    if refusal(decode_key, key):
        key += wire.string("of a member")
    return key
