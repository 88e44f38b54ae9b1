"""What a follower in Python makes of records, and of what befalls it while it reads."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiokafka import ConsumerRecord
from aiokafka.errors import TopicAuthorizationFailedError

from caughtup.followers.python.kafka import recommendations as module
from caughtup.followers.python.kafka.recommendations import RecommendationReader
from caughtup.models.assignors.following.recommendation import FollowedRecommendation, Objection
from caughtup.models.security.signing import HEADER, sign
from tests.models.assignors.following.test_follower import one_runs_all, record
from tests.models.security.test_signing import KEY, line

TOPIC = "caughtup-recommended-assignments"
GOOD = json.dumps(record(one_runs_all(), {1: (("0_0", "0_1"), ()), 2: ((), ())})).encode()


def arrived(value: bytes | None, *headers: tuple[str, bytes]) -> ConsumerRecord:
    return ConsumerRecord(TOPIC, 0, 7, 1, 0, b"orders", value, None, 6, 0, headers)


def reader(signing_key_file: Path | None = None) -> RecommendationReader:
    return RecommendationReader({}, TOPIC, "orders", signing_key_file)


def outcome(value: bytes | None, *headers: tuple[str, bytes], file: Path | None = None) -> str:
    """Say what comes of a record: a code, or that there is a recommendation."""
    one = reader(file)
    one._cluster = "c1"
    one._remember(arrived(value, *headers), 0)
    newest, _ = one.newest()
    return newest.code if isinstance(newest, Objection) else newest.decision_id


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff",
        b"{",
        b"[" * 1_000_000,
        b'{"a":' * 200_000,
        b"[" + b"[]," * 600_000 + b"1]",
        b"9" * 10_000_000,
        b"1." + b"9" * 10_000_000,
        b"1e400",
        b'{"schema": 1' + b"0" * 5_000_000 + b"}",
        b'"' + b"x" * 10_000_000,
        b" " * ((16 << 20) + 1),
        GOOD.replace(b'"d1"', b'"d\\n1"'),
        GOOD.replace(b'"d1"', b'"' + b"d" * 101 + b'"'),
    ],
    ids=range(14),
)
def test_whatever_is_written_there_is_malformed_at_worst(value: bytes) -> None:
    assert outcome(value) == "malformed"


def test_a_good_one_is_read_and_a_tombstone_is_none() -> None:
    assert outcome(GOOD) == "d1"
    assert outcome(None) == "no_recommendation"


def test_with_a_key_file_only_what_is_signed_by_its_keys_is_read(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    good = (HEADER, sign(KEY, "c1", "orders", GOOD))
    assert outcome(GOOD, good, file=file) == "no_signing_key"
    file.write_text(line(KEY.name))
    assert outcome(GOOD, file=file) == "not_signed"
    assert outcome(GOOD, ("another-header", good[1]), file=file) == "not_signed"
    assert outcome(GOOD + b" ", good, file=file) == "bad_signature"
    assert outcome(GOOD, (HEADER, sign(KEY, "c2", "orders", GOOD)), file=file) == "bad_signature"
    assert outcome(GOOD, good, (HEADER, b"x"), file=file) == "bad_signature"
    assert outcome(GOOD, (HEADER, b"x"), good, file=file) == "d1"
    # Without one, nobody looks.
    assert outcome(GOOD, (HEADER, b"x")) == "d1"


async def reads(one: RecommendationReader, monkeypatch: pytest.MonkeyPatch, *ends: Any) -> None:
    """Have it try to read, each time with another end; the last one is where the test stops."""
    remaining = list(ends)

    async def counts(*given: object) -> dict[str, int]:
        return {TOPIC: 1}

    async def follow() -> None:
        if len(remaining) > 1:
            raise remaining.pop(0)
        remaining.pop()(one)
        raise asyncio.CancelledError

    monkeypatch.setattr(module, "_FIRST_RETRY", 0.0)
    one._retry = 0.0
    monkeypatch.setattr(module, "partition_counts", counts)
    monkeypatch.setattr(one, "_follow", follow)
    with suppress(asyncio.CancelledError):
        await one.run()
    assert remaining == []


@pytest.mark.parametrize(
    ("problem", "from_end"),
    [
        (TopicAuthorizationFailedError(TOPIC), False),
        (OSError("no route"), False),
        (MemoryError(), True),
        (RuntimeError("a bug"), False),
        (RecursionError(), False),
    ],
)
async def test_whatever_befalls_it_it_says_so_and_tries_again(
    problem: Exception, from_end: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def look(one: RecommendationReader) -> None:
        newest, _ = one.newest()
        assert isinstance(newest, Objection)
        seen.append((newest.code, one._from_end))

    await reads(reader(), monkeypatch, problem, look)
    assert seen == [("reader_failed", from_end)]


async def test_what_was_read_before_stays_and_grows_old(monkeypatch: pytest.MonkeyPatch) -> None:
    one = reader()
    one._remember(arrived(GOOD), 5)
    seen: list[Any] = []
    await reads(one, monkeypatch, MemoryError(), lambda one: seen.append(one.newest()))
    ((newest, age_ms),) = seen
    assert isinstance(newest, FollowedRecommendation)
    assert age_ms >= 5
