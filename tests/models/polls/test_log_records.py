"""The records of a log, range by range: those that count, each with its offset and its time."""

from __future__ import annotations

from random import Random

import pytest

from caughtup.agents.kafka.protocol.fetch_answer import plain_batch
from caughtup.models.polls.pending_commits import PendingCommits
from caughtup.models.polls.record_batches import LogRecords, Section, decode_log
from tests.models.polls.test_pending_commits import BEGAN_MS, PLAIN, history
from tests.support.record_batches import ABORT, COMMIT, LoggedRecord, marker, record_batch

Row = tuple[int, int, bytes | None, bytes | None]


def rows_of(found: LogRecords) -> list[Row]:
    """Return the records that count as offset, time, key and value; released ones first."""
    logged = found.logged
    assert logged.time is not None
    keys, values = logged.records.keys(), logged.records.values()
    rows = zip(logged.offset.tolist(), logged.time.tolist(), keys, values, strict=True)
    return [*((one.offset, one.at_ms, one.key, one.value) for one in found.released), *rows]


def carried(pending: PendingCommits, *, every: bool = False) -> PendingCommits:
    """Return what another process has of the commits that are pending here."""
    there = PendingCommits(every=every)
    there.restore(pending.commits())
    return there


@pytest.mark.parametrize("seed", range(200))
def test_wherever_ranges_end_what_counts_is_what_the_coordinator_keeps(seed):
    drawn = Random(seed)
    batches, states = history(drawn)
    data, values, pending, position = b"".join(batches), {}, PendingCommits(), 0
    end = decode_log(data, Section(0, len(data), 0, PendingCommits()), plain_batch, 1 << 40)
    while position < end.position:
        until = min(end.position, position + drawn.choice([1, 2, 5, 40]))
        section = Section(0, len(data), position, pending)
        found = decode_log(data, section, plain_batch, until)
        assert found.position == until
        for offset, at_ms, key, value in rows_of(found):
            assert at_ms == BEGAN_MS + offset
            assert found.released or position <= offset < until
            values.pop(key, None)
            if value is not None:
                values[key] = value
        position, pending = until, carried(pending)
    expected = states[-1].committed() if states else {}
    assert values == expected, f"seed {seed}"


@pytest.mark.parametrize("seed", range(100))
def test_of_other_topics_each_record_waits_for_its_transaction_and_an_aborted_one_never_counts(
    seed,
):
    drawn = Random(seed)
    batches, opened, expected, offset = [], {}, [], 0
    for _ in range(drawn.randrange(2, 40)):
        producer = drawn.choice([PLAIN, 5, 6])
        if producer != PLAIN and drawn.random() < 0.4:
            commits = drawn.random() < 0.6
            batches.append(marker(offset, producer, COMMIT if commits else ABORT))
            written = opened.pop(producer, [])
            expected += written if commits else []
            offset += 1
            continue
        keys, values = [b"g", b"\0\1\0\1g", None], [b"value", None]
        records = [
            LoggedRecord(offset + n, drawn.choice(keys), drawn.choice(values), BEGAN_MS + n)
            for n in range(drawn.randrange(1, 4))
        ]
        rows = [(one.offset, one.timestamp_ms, one.key, one.value) for one in records]
        (expected if producer == PLAIN else opened.setdefault(producer, [])).extend(rows)
        batches.append(record_batch(records, producer_id=producer, transactional=producer != PLAIN))
        offset += len(records)
    data, found, pending, position = b"".join(batches), [], PendingCommits(every=True), 0
    while position < offset:
        until = min(offset, position + drawn.choice([1, 2, 5, 40]))
        found += rows_of(
            decode_log(data, Section(0, len(data), position, pending), plain_batch, until)
        )
        position, pending = until, carried(pending, every=True)
    assert sorted(found, key=lambda row: row[0]) == sorted(expected, key=lambda row: row[0])
    assert len(pending) == sum(map(len, opened.values()))


def test_a_range_whose_last_records_are_compacted_away_ends_at_its_end():
    batches = [record_batch([LoggedRecord(offset, b"key", b"value")]) for offset in (3, 20)]
    data = b"".join(batches)
    found = decode_log(data, Section(0, len(data), 0, PendingCommits()), plain_batch, 15)
    assert (found.position, [row[0] for row in rows_of(found)]) == (15, [3])
    cut = Section(0, len(data) - 1, 0, PendingCommits())
    found = decode_log(data, cut, plain_batch, 25)
    assert (found.position, [row[0] for row in rows_of(found)]) == (4, [3]), "the rest is fetched"


def test_a_broker_s_time_counts_for_all_records_of_its_batch():
    records = [LoggedRecord(n, b"key", b"value", BEGAN_MS + n) for n in range(3)]
    batch = bytearray(record_batch(records))
    batch[22] |= 0x08
    batch[35:43] = (BEGAN_MS + 999).to_bytes(8)
    data = bytes(batch)
    found = decode_log(data, Section(0, len(data), 0, PendingCommits()), plain_batch, 10)
    assert [row[1] for row in rows_of(found)] == [BEGAN_MS + 999] * 3
