"""A checkpoint's files, as Spark writes them, and as nobody does."""

from __future__ import annotations

import json
import random

import pytest

from caughtup.models.ids import TopicPartition
from caughtup.models.records import spark_checkpoint_files as checkpoint_files
from caughtup.models.records.decoding import RefusedError
from caughtup.models.records.spark_checkpoint_files import (
    decode_batch_end,
    decode_first_offsets,
    decode_query_id,
    is_commit,
)
from tests.support.checkpoints import batch_end, line

ORDERS = {"orders": {0: 123, 1: 45}}


def parts(topic: str, *offsets: int) -> dict[TopicPartition, int]:
    return {TopicPartition(topic, number): offset for number, offset in enumerate(offsets)}


def test_a_batch_ends_where_the_line_of_its_source_says() -> None:
    found = decode_batch_end(batch_end(1_700_000_000_000, ORDERS))
    assert found == (1_700_000_000_000, parts("orders", 123, 45), 1)


def test_several_sources_are_one_query_and_the_lower_offset_counts() -> None:
    found = decode_batch_end(
        batch_end(1, ORDERS, "-", {"orders": {0: 100, 2: 9}, "clicks": {0: 7}})
    )
    assert found.sources == 2
    assert found.offsets == parts("orders", 100, 45, 9) | parts("clicks", 7)


@pytest.mark.parametrize(
    "other",
    [
        '{"logOffset":3}',
        "17",
        '{"0":{"value":12,"runTimeMs":1700000000000}}',
        '{"sourceVersion":1,"reservoirId":"a","reservoirVersion":3,"index":0}',
        '{"shard-0":{"iteratorType":"AFTER_SEQUENCE_NUMBER","position":"49"}}',
        "[1,2]",
        "null",
        '"abc"',
    ],
)
def test_other_sources_are_passed_over(other: str) -> None:
    found = decode_batch_end(batch_end(1, other, ORDERS))
    assert (found.offsets, found.sources) == (parts("orders", 123, 45), 1)
    assert decode_batch_end(batch_end(1, other)).sources == 0


def test_an_empty_source_of_kafka_is_one() -> None:
    assert decode_batch_end(batch_end(1, "{}")) == (1, {}, 1)
    assert decode_batch_end(batch_end(1, "-")) == (1, {}, 0)


def test_the_next_format_names_its_sources() -> None:
    value = f'v2\n{{"batchTimestampMs":5}}\n0:{line(ORDERS)}\nclicks:-\nfiles:{{"logOffset":1}}'
    assert decode_batch_end(value.encode()) == (5, parts("orders", 123, 45), 1)


def test_without_metadata_the_time_is_not_known() -> None:
    assert decode_batch_end(f"v1\n\n{line(ORDERS)}".encode()).at_ms is None
    assert decode_batch_end(batch_end(0, ORDERS)).at_ms is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "other_schema"),
        (b"v3\n{}\n{}", "other_schema"),
        (b"\0v1\n{}", "other_schema"),
        (b"v1", "bad_json"),
        (b"v1\n{}", "bad_json"),
        (b"v1\n{", "bad_json"),
        (b"v1\n{}\n", "bad_json"),
        (b'v1\n{}\n{"orders":{"0":12', "bad_json"),
        (b'v1\n{"batchTimestampMs":"x"}\n{}', "bad_type"),
        (b'v1\n{"batchTimestampMs":99999999999999999}\n{}', "bad_type"),
        (b'v1\n{}\n{"orders":{"0":-1}}', "bad_type"),
        (b'v1\n{}\n{"orders":{"0":9223372036854775808}}', "bad_type"),
        (b'v1\n{}\n{"orders":{"0":1.5}}', "bad_type"),
        (b'v1\n{}\n{"orders":{"-1":5}}', "bad_type"),
        (b'v1\n{}\n{"orders":{"1000000000":5}}', "bad_type"),
        (b'v1\n{}\n{"no topic":{"0":5}}', "bad_type"),
        (b'v1\n{}\n{"a":' + b"[" * 100 + b"]" * 100 + b"}", "too_deep"),
        (b"v1\n{}\n\xff\xfe", "bad_json"),
        (b"v1\n{}" + b"\n-" * 1_001, "too_many"),
        (b"v1\n{}" + b"\n-" * 10_001, "too_many"),
        (b"v2\n{}\n{}", "bad_json"),
    ],
)
def test_what_spark_does_not_write_is_refused(value: bytes, reason: str) -> None:
    with pytest.raises(RefusedError) as refused:
        decode_batch_end(value)
    assert refused.value.code == reason


def test_bounds_hold_before_anything_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint_files, "MOST_PARTITIONS", 3)
    assert len(decode_batch_end(batch_end(1, {"a": {0: 1, 1: 1, 2: 1}})).offsets) == 3
    with pytest.raises(RefusedError, match="partitions"):
        decode_batch_end(batch_end(1, {"a": {0: 1, 1: 1}}, {"b": {0: 1, 1: 1}}))
    monkeypatch.setattr(checkpoint_files, "MOST_BYTES", 100)
    with pytest.raises(RefusedError, match="bytes"):
        decode_batch_end(b"v1\n" + b" " * 100)


def test_where_a_source_began_has_a_byte_before_it() -> None:
    assert decode_first_offsets(b"\0v1\n" + line(ORDERS).encode()) == parts("orders", 123, 45)
    assert decode_first_offsets(b"\0" + line(ORDERS).encode()) == parts("orders", 123, 45)
    assert decode_first_offsets(b'v1\n{"path":"file:///a"}') is None
    assert decode_first_offsets(b"") is None
    with pytest.raises(RefusedError):
        decode_first_offsets(b"\0v1\n{")


def test_the_id_of_a_query() -> None:
    assert decode_query_id(b'{"id":"a-b-c"}') == "a-b-c"
    for value in (b"", b"{}", b'{"id":""}', b'{"id":5}', b'{"id":"' + b"x" * 5_000 + b'"}'):
        with pytest.raises(RefusedError):
            decode_query_id(value)


def test_a_commit_begins_with_its_version() -> None:
    assert is_commit(b'v1\n{"nextBatchWatermarkMs":0}')
    assert is_commit(b"v2\n{}")
    assert not is_commit(b"")


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_file_is_read_or_refused(seed: int) -> None:
    drawn = random.Random(seed)
    good = batch_end(1_700_000_000_000, ORDERS, "-", {"clicks": {0: 7}})
    for _ in range(200):
        damaged = bytearray(good)
        for _ in range(drawn.randint(1, 4)):
            at = drawn.randrange(len(damaged))
            if drawn.random() < 0.3:
                del damaged[at : at + drawn.randint(1, 20)]
            else:
                damaged[at] = drawn.randrange(256)
        for decode in (decode_batch_end, decode_first_offsets, decode_query_id):
            try:
                found = decode(bytes(damaged))
            except RefusedError:
                continue
            offsets = getattr(found, "offsets", None) or {}
            assert all(0 <= one < 2**63 for one in offsets.values()), (seed, bytes(damaged))
            assert json.dumps(sorted(offsets.values()))
