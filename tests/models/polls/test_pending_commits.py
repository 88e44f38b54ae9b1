"""Offset commits of transactions count when the group coordinator says so, wherever polls are cut."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from caughtup.agents.kafka.protocol.fetch_answer import plain_batch
from caughtup.models.polls import pending_commits
from caughtup.models.polls.pending_commits import PendingCommits
from caughtup.models.polls.record_batches import Section, decode_record_batches
from caughtup.models.wire.consumer_offsets import OffsetKey
from tests.support import wire
from tests.support.record_batches import ABORT, COMMIT, LoggedRecord, marker, record_batch

KEYS = [wire.offset_key(OffsetKey(group, "orders", n), 1) for group in "ab" for n in range(3)]
PLAIN = -1
BEGAN_MS = 1_790_000_000_000


@dataclass
class Coordinator:
    """What Kafka's OffsetMetadataManager keeps, written down from its source, a record at a time."""

    offsets: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    pending: dict[int, dict[bytes, tuple[int, bytes]]] = field(default_factory=dict)

    def replay(self, offset: int, producer: int, key: bytes, value: bytes | None) -> None:
        if value is None:
            self.offsets.pop(key, None)
            for commits in self.pending.values():
                commits.pop(key, None)
        elif producer == PLAIN:
            self.offsets[key] = offset, value
        else:
            self.pending.setdefault(producer, {})[key] = offset, value

    def end(self, producer: int, *, committed: bool) -> None:
        for key, (offset, value) in self.pending.pop(producer, {}).items():
            if committed and (key not in self.offsets or offset > self.offsets[key][0]):
                self.offsets[key] = offset, value

    def committed(self) -> dict[bytes, bytes]:
        return {key: value for key, (_, value) in self.offsets.items()}


class Follower:
    """What is committed by what ``decode_record_batches`` returns, answer by answer."""

    def __init__(self) -> None:
        self.pending = PendingCommits()
        self.values: dict[bytes, bytes] = {}
        self.offsets: dict[bytes, int] = {}
        self.position = 0

    def read(self, data: bytes, *, from_position: int | None = None) -> None:
        asked = self.position if from_position is None else from_position
        section = Section(0, len(data), asked, self.pending)
        found = decode_record_batches(data, [section], plain_batch)
        (self.position,) = found.positions
        keys, values, offsets = found.records.keys(), found.records.values(), found.records.offset
        assert offsets is not None
        for key, value, offset in zip(keys, values, offsets.tolist(), strict=True):
            assert key is not None
            self.values.pop(key, None)
            self.offsets.pop(key, None)
            if value is not None:
                self.values[key], self.offsets[key] = value, offset


def history(drawn: random.Random) -> tuple[list[bytes], list[Coordinator]]:
    """Draw a log: its batches, and what the coordinator keeps after each of them."""
    known, batches, states, offset = Coordinator(), [], [], 0
    for _ in range(drawn.randrange(60)):
        producer = drawn.choice([PLAIN, PLAIN, 5, 6, 7])
        if producer != PLAIN and drawn.random() < 0.4:
            committed = drawn.random() < 0.6
            batches.append(marker(offset, producer, COMMIT if committed else ABORT))
            known.end(producer, committed=committed)
            offset += 1
        else:
            records = []
            for _ in range(drawn.randrange(1, 4)):
                offset += drawn.choice([0, 0, 3])  # what lay between was compacted away
                key = drawn.choice(KEYS)
                value = None if drawn.random() < 0.15 else b"value %d" % offset
                records.append(LoggedRecord(offset, key, value, BEGAN_MS + offset))
                known.replay(offset, producer, key, value)
                offset += 1
            transactional = producer != PLAIN
            codec = drawn.choice([0, 0, 0, 1])
            batches.append(
                record_batch(
                    records, producer_id=producer, transactional=transactional, compression=codec
                )
            )
        states.append(
            Coordinator(
                dict(known.offsets), {one: dict(held) for one, held in known.pending.items()}
            )
        )
    return batches, states


@pytest.mark.parametrize("seed", range(300))
def test_what_counts_is_what_the_coordinator_keeps_after_each_answer(seed):
    drawn = random.Random(seed)
    batches, states = history(drawn)
    follower, first = Follower(), 0
    while first < len(batches):
        count = drawn.choice([1, 1, 2, 5, 30])
        follower.read(b"".join(batches[first : first + count]))
        first += count
        known = states[min(first, len(batches)) - 1]
        assert follower.values == known.committed(), f"seed {seed}, before batch {first}"
    assert len(follower.pending) <= sum(map(len, states[-1].pending.values())) if states else True


@pytest.mark.parametrize("seed", range(50))
def test_a_log_that_is_read_from_its_start_again_says_the_same(seed):
    drawn = random.Random(seed)
    batches, states = history(drawn)
    follower = Follower()
    for cut in range(1, len(batches) + 1, 4):
        follower.pending.clear()
        follower.read(b"".join(batches[:cut]), from_position=0)
        assert follower.values == states[cut - 1].committed(), f"seed {seed}"
        kept = {key: offset for key, (offset, _) in states[cut - 1].offsets.items()}
        assert follower.offsets == kept, f"seed {seed}"


def test_sections_of_one_answer_have_transactions_of_their_own():
    """One producer commits in both partitions; the marker of one says nothing of the other."""
    key, other = KEYS[0], KEYS[3]
    first = record_batch([LoggedRecord(0, key, b"1")], producer_id=5, transactional=True)
    second = record_batch([LoggedRecord(0, other, b"2")], producer_id=5, transactional=True)
    pending = PendingCommits(), PendingCommits()

    def read(*parts: bytes) -> list[bytes | None]:
        sections, start = [], 0
        for part, held in zip(parts, pending, strict=True):
            sections.append(Section(start, start + len(part), 0, held))
            start += len(part)
        return list(decode_record_batches(b"".join(parts), sections, plain_batch).records.values())

    assert read(first, second) == []
    assert [len(held) for held in pending] == [1, 1]
    plain = record_batch([LoggedRecord(9, KEYS[1], b"3")])
    assert read(plain, marker(1, 5, COMMIT) + plain) == [b"3", b"2", b"3"]
    assert [len(held) for held in pending] == [1, 0]
    assert pending[0].opened() == {5: 0}


def test_only_offset_commits_wait_for_a_transaction():
    """The coordinator replays every other record at once, whatever producer it is of."""
    group = LoggedRecord(0, wire.group_key("a"), b"metadata")
    short = LoggedRecord(1, b"\0", b"value")
    follower = Follower()
    follower.read(record_batch([group, short], producer_id=5, transactional=True))
    assert follower.values == {group.key: b"metadata", b"\0": b"value"}
    assert len(follower.pending) == 0


def test_control_records_of_other_kinds_end_no_transaction():
    follower = Follower()
    follower.read(
        record_batch([LoggedRecord(0, KEYS[0], b"1")], producer_id=5, transactional=True)
        + marker(1, 5, b"\0\0\0\2")
        + marker(2, 5, b"\0")
    )
    assert (follower.values, len(follower.pending)) == ({}, 1)
    follower.read(marker(3, 5, COMMIT))
    assert follower.values == {KEYS[0]: b"1"}


def test_too_many_open_transactions_cost_the_oldest_one(monkeypatch):
    monkeypatch.setattr(pending_commits, "MOST_BYTES", 20_000)
    follower = Follower()
    for producer in range(100):
        key = wire.offset_key(OffsetKey("g", "orders", producer), 1)
        written = record_batch(
            [LoggedRecord(producer, key, b"v" * 500)], producer_id=producer, transactional=True
        )
        follower.read(written)
    opened = follower.pending.opened()
    assert 10 < len(opened) < 40
    assert sorted(opened) == list(range(100 - len(opened), 100))
    assert follower.pending.dropped == 100 - len(opened)
    follower.read(marker(100, 0, COMMIT) + marker(101, 99, COMMIT))
    assert len(follower.values) == 1
