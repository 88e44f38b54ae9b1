from __future__ import annotations

import random
import struct
from contextlib import suppress

import pytest

from caughtup.agents.kafka.protocol.fetch_answer import FetchedPartition, decode_fetch
from caughtup.agents.kafka.protocol.requests import Key, fetch_call
from caughtup.models.errors import DecodeError

TOPIC = b"__consumer_offsets"


def answer(*partitions: tuple[int, int, list[tuple[int, int]] | None, bytes | None]) -> bytes:
    """Write an answer to Fetch v4: partitions with error code, aborted transactions, records."""
    written = struct.pack(">iih", 0, 1, len(TOPIC)) + TOPIC + struct.pack(">i", len(partitions))
    for number, error_code, aborted, records in partitions:
        written += struct.pack(">ihqq", number, error_code, 90, 80)
        written += struct.pack(">i", -1 if aborted is None else len(aborted))
        written += b"".join(struct.pack(">qq", *one) for one in aborted or ())
        written += struct.pack(">i", -1 if records is None else len(records)) + (records or b"")
    return written


def test_each_partition_has_its_place_in_the_answer():
    data = answer((3, 0, None, b"batches"), (1, 6, [], None), (2, 0, [(7, 50), (8, 60)], b"more"))
    found = decode_fetch(data)
    assert {number: data[one.start : one.end] for number, one in found.items()} == {
        3: b"batches",
        1: b"",
        2: b"more",
    }
    assert [found[number].error_code for number in (1, 2, 3)] == [6, 0, 0]
    assert [found[number].high_watermark for number in (1, 2, 3)] == [90, 90, 90]
    assert isinstance(found[1], FetchedPartition)


def test_an_answer_that_ends_early_is_refused_wherever_it_does():
    data = answer((3, 0, None, b"batches"), (2, 0, [(7, 50)], b"more"))
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            decode_fetch(data[:size])


def test_a_damaged_answer_is_one_error_or_lies_within_its_bytes():
    data = answer((3, 0, [(1, 2)] * 3, b"batches"), (2, 0, None, b"more" * 30))
    for seed in range(3_000):
        drawn = random.Random(seed)
        damaged = bytearray(data)
        for _ in range(drawn.randrange(1, 4)):
            damaged[drawn.randrange(len(damaged))] = drawn.randrange(256)
        with suppress(DecodeError):  # anything else fails the test
            for one in decode_fetch(bytes(damaged)).values():
                assert 0 <= one.start <= one.end <= len(damaged), f"seed {seed}"


def test_a_fetch_asks_for_all_records_of_each_partition():
    call = fetch_call(
        "t", {5: 1 << 40, 6: 0}, wait_ms=200, most_bytes=4 << 20, partition_bytes=1 << 20
    )
    assert (call.key, call.version, call.flexible) == (Key.FETCH, 4, False)
    head = struct.pack(">iiiib", -1, 200, 1, 4 << 20, 0)
    topic = struct.pack(">ih", 1, 1) + b"t" + struct.pack(">i", 2)
    asked = struct.pack(">iqi", 5, 1 << 40, 1 << 20) + struct.pack(">iqi", 6, 0, 1 << 20)
    assert call.body == head + topic + asked
