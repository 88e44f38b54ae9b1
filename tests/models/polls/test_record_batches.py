from __future__ import annotations

import random
import struct
from contextlib import suppress

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from caughtup.agents.kafka.protocol.fetch_answer import plain_batch
from caughtup.models.errors import DecodeError
from caughtup.models.polls.batch import decode_columns, decode_records
from caughtup.models.polls.pending_commits import PendingCommits
from caughtup.models.polls.record_batches import (
    Section,
    decode_record_batches,
    readable,
    without_records,
)
from caughtup.models.wire.consumer_offsets import OffsetKey
from tests.models.polls.test_batch import commit
from tests.support import wire
from tests.support.record_batches import LoggedRecord, answer_of, record_batch

Read = list[tuple[bytes | None, bytes | None]]
_BYTES = st.none() | st.binary(max_size=200)
_RECORD = st.tuples(_BYTES, _BYTES, st.integers(0, 3), st.integers(-(1 << 40), 1 << 40))


def read(data: bytes, sections: list[Section]) -> tuple[Read, list[int]]:
    found = decode_record_batches(data, sections, plain_batch)
    return read_of(found.records.keys(), found.records.values()), found.positions


def section_of(data: bytes, position: int = 0) -> Section:
    return Section(0, len(data), position, PendingCommits())


def read_of(keys, values) -> Read:
    return list(zip(keys, values, strict=True))


def one_by_one(count: int, first: int = 0) -> list[LoggedRecord]:
    return [LoggedRecord(first + n, b"key-%d" % n, b"value") for n in range(count)]


def pairs(records: list[LoggedRecord]) -> Read:
    return [(one.key, one.value) for one in records]


@given(
    st.lists(st.lists(st.lists(_RECORD, min_size=1, max_size=12), max_size=8), max_size=4),
    st.integers(0, 1 << 32),
)
def test_records_are_those_that_were_written(drawn, seed):
    random.seed(seed)
    sections, expected, ends = [], [], []
    for batches in drawn:
        offset, written = random.randrange(1 << 40), []
        for batch in batches:
            records = []
            for key, value, gap, time_ms in batch:
                offset += gap
                headers = [("a", None), ("b", b"c" * gap)] if gap else []
                records.append(LoggedRecord(offset, key, value, 1 << 41 | time_ms, headers))
                offset += 1
            written.append(record_batch(records))
            expected += pairs(records)
        sections.append(written)
        ends.append(offset if written else 0)
    assert read(*answer_of(sections)) == (expected, ends)


@pytest.mark.parametrize("sizes", [[300], [1] * 300, [1, 200] * 120, list(range(1, 150))])
def test_batches_of_any_size_are_read_in_their_order(sizes):
    batches, records, offset = [], [], 0
    for size in sizes:
        batches.append(one_by_one(size, offset))
        records += batches[-1]
        offset += size
    found, positions = read(*answer_of([list(map(record_batch, batches))]))
    assert found == pairs(records)
    assert positions == [offset]


def test_what_lies_before_the_position_is_left_out():
    data, (section,) = answer_of([[record_batch(one_by_one(10)), record_batch(one_by_one(3, 10))]])
    found, positions = read(data, [section._replace(position=7)])
    assert found == pairs(one_by_one(10)[7:] + one_by_one(3, 10))
    assert positions == [13]


def test_a_batch_that_is_cut_off_is_left_for_the_next_answer():
    first, second = record_batch(one_by_one(4)), record_batch(one_by_one(300, 4))
    whole = first + second
    for size in range(len(first), len(whole)):
        found, positions = read(whole[:size], [section_of(whole[:size])])
        assert (found, positions) == (pairs(one_by_one(4)), [4])
    assert read(whole[:30], [section_of(whole[:30], 2)]) == ([], [2])


def test_an_emptied_batch_still_counts_its_offsets():
    emptied = bytearray(record_batch(one_by_one(5))[:61])
    struct.pack_into(">i", emptied, 8, 61 - 12)
    struct.pack_into(">i", emptied, 57, 0)
    found, positions = read(*answer_of([[bytes(emptied)], [bytes(emptied)] * 2]))
    assert found == []
    assert positions == [5, 5]


@pytest.mark.parametrize("codec", range(5))
def test_what_is_compressed_is_read_like_everything_else(codec):
    batches = [
        record_batch(one_by_one(2)),
        record_batch(one_by_one(9, 2), compression=codec),
        record_batch(one_by_one(1, 20)),
    ]
    data, sections = answer_of([batches, batches])
    expected = pairs(one_by_one(2) + one_by_one(9) + one_by_one(1))
    assert read(data, sections) == (expected * 2, [21, 21])


@pytest.mark.parametrize(
    ("magic", "codec"), [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3)]
)
def test_older_formats_are_read_like_everything_else(magic, codec):
    """Kafka 4.0 writes none of them, and gives them out as they are."""
    legacy = LegacyRecordBatchBuilder(magic=magic, compression_type=codec, batch_size=1 << 20)
    for offset in range(3):
        legacy.append(offset, timestamp=1, key=b"key-%d" % offset, value=b"value" * 20)
    after = record_batch(one_by_one(1, 3))
    found, positions = read(*answer_of([[bytes(legacy.build()), after]]))
    expected = [(b"key-%d" % n, b"value" * 20) for n in range(3)] + pairs(one_by_one(1))
    assert (found, positions) == (expected, [4])


def test_a_batch_that_cannot_be_read_costs_itself_alone():
    damaged = bytearray(record_batch(one_by_one(5, 2)))
    damaged[61] = 0x7F  # the length of its first record
    batches = [record_batch(one_by_one(2)), bytes(damaged), record_batch(one_by_one(1, 7))]
    data, sections = answer_of([batches])
    with pytest.raises(DecodeError):
        decode_record_batches(data, sections, plain_batch)
    found = decode_record_batches(data, sections, readable, unpack_all=True)
    expected = pairs(one_by_one(2) + one_by_one(1, 7))
    assert read_of(found.records.keys(), found.records.values()) == expected
    assert found.positions == [8]


def test_a_length_that_is_impossible_ends_its_section_alone():
    damaged = bytearray(record_batch(one_by_one(5, 2)))
    struct.pack_into(">i", damaged, 8, 3)
    data, sections = answer_of(
        [[record_batch(one_by_one(2)), bytes(damaged)], [record_batch(one_by_one(3))]]
    )
    found = decode_record_batches(data, sections, readable, unpack_all=True)
    assert found.positions == [2, 3]


def test_bytes_that_are_no_batches_are_one_error():
    written = b"".join(record_batch(one_by_one(size, 10 * size)) for size in (3, 40, 130))
    for seed in range(3_000):
        drawn = random.Random(seed)
        damaged = bytearray(written)
        for _ in range(drawn.randrange(1, 4)):
            at = drawn.choice([drawn.randrange(len(damaged)), drawn.randrange(61)])
            damaged[at] = drawn.randrange(256)
        with suppress(DecodeError):  # anything else fails the test
            found = decode_record_batches(bytes(damaged), [section_of(damaged)], without_records)
            assert sum(map(len, filter(None, found.records.values()))) <= len(damaged)


def test_a_claim_of_many_records_makes_room_for_none():
    claimed = bytearray(record_batch(one_by_one(1)))
    struct.pack_into(">i", claimed, 57, (1 << 31) - 1)
    with pytest.raises(DecodeError, match="aren't as long"):
        decode_record_batches(bytes(claimed), [section_of(claimed)], plain_batch)


@pytest.mark.parametrize("seed", range(40))
def test_a_batch_says_the_same_however_its_records_come(seed):
    drawn = random.Random(seed)
    records = []
    groups = ["shop", "väter", "x" * drawn.choice([1, 40, 300])]
    for offset in range(drawn.choice([1, 60, 400])):
        key = OffsetKey(drawn.choice(groups[:2] if offset % 3 else groups), "orders", offset % 7)
        value = wire.offset_commit(commit(offset), drawn.choice([1, 3, 4]))
        kind = drawn.randrange(12)
        raw = wire.offset_key(key, drawn.choice([0, 1, 1, 1]))
        if kind == 0:
            value = value[: drawn.randrange(len(value))]
        elif kind == 1:
            raw = raw[: drawn.randrange(len(raw))]
        elif kind == 2:
            raw, value = wire.group_key("shop"), b"\0\3"
        records.append(
            LoggedRecord(offset, raw if kind != 3 else None, value if kind > 4 else None)
        )
    batches = [records[at : at + 5] for at in range(0, len(records), 5)]
    data, sections = answer_of([list(map(record_batch, batches))])
    framed = decode_records(decode_record_batches(data, sections, plain_batch).records)
    listed = decode_columns([one.key for one in records], [one.value for one in records])
    assert framed.commits.by_key() == listed.commits.by_key(), f"seed {seed}"
    assert framed.commits.heads_by_topic_id() == listed.commits.heads_by_topic_id()
    for field in ("groups", "records", "skipped", "errors"):
        assert getattr(framed, field) == getattr(listed, field)
