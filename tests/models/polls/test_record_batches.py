from __future__ import annotations

import random
import struct
from contextlib import suppress

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.errors import DecodeError
from caughtup.models.polls.batch import decode_columns, decode_records
from caughtup.models.polls.record_batches import Section, decode_record_batches
from caughtup.models.wire.consumer_offsets import OffsetKey
from tests.models.polls.test_batch import commit
from tests.support import wire
from tests.support.record_batches import (
    ABORT,
    COMMIT,
    LoggedRecord,
    answer_of,
    marker,
    record_batch,
)

Read = list[tuple[bytes | None, bytes | None]]
_BYTES = st.none() | st.binary(max_size=200)
_RECORD = st.tuples(_BYTES, _BYTES, st.integers(0, 3), st.integers(-(1 << 40), 1 << 40))


def read(data: bytes, sections: list[Section]) -> tuple[Read, list[int], list[str | None]]:
    found = decode_record_batches(data, sections)
    return read_of(found.records.keys(), found.records.values()), found.positions, found.refused


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
    assert read(*answer_of(sections)) == (expected, ends, [None] * len(sections))


@pytest.mark.parametrize("sizes", [[300], [1] * 300, [1, 200] * 120, list(range(1, 150))])
def test_batches_of_any_size_are_read_in_their_order(sizes):
    batches, records, offset = [], [], 0
    for size in sizes:
        batches.append(one_by_one(size, offset))
        records += batches[-1]
        offset += size
    found, positions, _ = read(*answer_of([list(map(record_batch, batches))]))
    assert found == pairs(records)
    assert positions == [offset]


def test_what_lies_before_the_position_is_left_out():
    data, (section,) = answer_of([[record_batch(one_by_one(10)), record_batch(one_by_one(3, 10))]])
    found, positions, _ = read(data, [section._replace(position=7)])
    assert found == pairs(one_by_one(10)[7:] + one_by_one(3, 10))
    assert positions == [13]


def test_a_batch_that_is_cut_off_is_left_for_the_next_answer():
    first, second = record_batch(one_by_one(4)), record_batch(one_by_one(300, 4))
    whole = first + second
    for size in range(len(first), len(whole)):
        found, positions, refused = read(whole[:size], [Section(0, size, 0)])
        assert (found, positions, refused) == (pairs(one_by_one(4)), [4], [None])
    assert read(whole[:30], [Section(0, 30, 2)]) == ([], [2], [None])


def test_an_emptied_batch_still_counts_its_offsets():
    emptied = bytearray(record_batch(one_by_one(5))[:61])
    struct.pack_into(">i", emptied, 8, 61 - 12)
    struct.pack_into(">i", emptied, 57, 0)
    found, positions, _ = read(*answer_of([[bytes(emptied)], [bytes(emptied)] * 2]))
    assert found == []
    assert positions == [5, 5]


def test_a_section_ends_before_what_is_left_to_others():
    plain = record_batch(one_by_one(2))
    legacy = LegacyRecordBatchBuilder(magic=1, compression_type=0, batch_size=1 << 20)
    legacy.append(0, timestamp=1, key=b"key", value=b"value" * 20)
    others = [record_batch(one_by_one(9, 2), compression=1), bytes(legacy.build())]
    after = record_batch(one_by_one(1, 11))
    found, positions, refused = read(*answer_of([[plain, other, after] for other in others]))
    assert found == pairs(one_by_one(2)) * 2
    assert positions == [2, 2]
    assert refused == ["a compressed batch", "a batch of format 1"]


def test_markers_are_no_records():
    batches = [
        record_batch(one_by_one(2), producer_id=7, transactional=True),
        marker(2, 7, COMMIT),
        record_batch(one_by_one(1, 3)),
        marker(4, 9, COMMIT),
    ]
    found, positions, _ = read(*answer_of([batches]))
    assert found == pairs(one_by_one(2) + one_by_one(1, 3))
    assert positions == [5]


@pytest.mark.parametrize("seed", range(200))
def test_aborted_transactions_are_left_out(seed):
    drawn = random.Random(seed)
    batches, kept, aborted, offset = [], [], [], 0
    #: By producer: where its transaction began, and its records.
    under_way: dict[int, tuple[int, list[tuple[int, LoggedRecord]]]] = {}
    for _ in range(drawn.randrange(40)):
        producer = drawn.choice([-1, 1, 2, 3])
        if producer in under_way and drawn.random() < 0.4:
            first, records = under_way.pop(producer)
            if drawn.random() < 0.5:
                aborted.append((producer, first))
                batches.append(marker(offset, producer, ABORT))
            else:
                kept += records
                batches.append(marker(offset, producer, COMMIT))
            offset += 1
            continue
        records = one_by_one(drawn.randrange(1, 4), offset)
        transactional = producer >= 0
        batches.append(record_batch(records, producer_id=producer, transactional=transactional))
        if transactional:
            _, before = under_way.setdefault(producer, (offset, []))
            before += [(one.offset, one) for one in records]
        else:
            kept += [(one.offset, one) for one in records]
        offset += len(records)
    # Only what lies before the first open transaction may be given to a committed reader.
    stable = min((first for first, _ in under_way.values()), default=offset)
    expected = [one for at, one in sorted(kept, key=lambda pair: pair[0]) if at < stable]
    upto, size = 0, 0
    for batch in batches:
        (base,) = struct.unpack_from(">q", batch)
        if base < stable:
            upto, size = upto + 1, size + len(batch)
    data, (section,) = answer_of([batches[:upto]])
    drawn.shuffle(aborted)
    found, positions, _ = read(data, [section._replace(aborted=aborted)])
    assert found == pairs(expected), f"seed {seed}"
    assert positions == [stable]


def test_bytes_that_are_no_batches_are_one_error():
    written = b"".join(record_batch(one_by_one(size, 10 * size)) for size in (3, 40, 130))
    for seed in range(3_000):
        drawn = random.Random(seed)
        damaged = bytearray(written)
        for _ in range(drawn.randrange(1, 4)):
            at = drawn.choice([drawn.randrange(len(damaged)), drawn.randrange(61)])
            damaged[at] = drawn.randrange(256)
        with suppress(DecodeError):  # anything else fails the test
            found = decode_record_batches(bytes(damaged), [Section(0, len(damaged), 0)])
            assert sum(map(len, filter(None, found.records.values()))) <= len(damaged)


def test_a_claim_of_many_records_makes_room_for_none():
    claimed = bytearray(record_batch(one_by_one(1)))
    struct.pack_into(">i", claimed, 57, (1 << 31) - 1)
    with pytest.raises(DecodeError, match="aren't as long"):
        decode_record_batches(bytes(claimed), [Section(0, len(claimed), 0)])


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
    framed = decode_records(decode_record_batches(data, sections).records)
    listed = decode_columns([one.key for one in records], [one.value for one in records])
    assert framed.commits.by_key() == listed.commits.by_key(), f"seed {seed}"
    assert framed.commits.heads_by_topic_id() == listed.commits.heads_by_topic_id()
    for field in ("groups", "records", "skipped", "errors"):
        assert getattr(framed, field) == getattr(listed, field)
