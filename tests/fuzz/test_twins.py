"""Hostile records of every kind cost themselves and their own groups, and nobody else anything.

CAUGHTUP_FUZZ_RECORDS is how many there are, CAUGHTUP_FUZZ_SEED what they are made from.
"""

from __future__ import annotations

import os
import secrets
import time
from random import Random

import pytest

from caughtup.models.groups.table import TopicNames
from caughtup.models.histories import offset_sums
from caughtup.models.wire import user_data
from tests.fuzz.applications import Applications
from tests.fuzz.offset_records import OffsetRecords
from tests.fuzz.service_topics import ServiceTopics
from tests.fuzz.twins import FaultsError, Twins
from tests.fuzz.values import Values
from tests.support.sizes import daily

RECORDS = int(os.environ.get("CAUGHTUP_FUZZ_RECORDS", "1000000"))
#: Of a turn: so many of ``__consumer_offsets``, and of the service's own topics.
POLL, TOLD = 400, 40
#: Rounds begin anew after so many turns, so that one may be run again by itself.
TURNS = 200
LONGEST_TURN_SECONDS = 10.0


def fuzz(seed: int, enough: int) -> str:
    """Run so many records, and say what came of it. What fails names the round's seed."""
    made, began, refused, longest = 0, time.monotonic(), 0, 0.0
    while made < enough:
        values = Values(Random(seed))
        poll, told, liars = OffsetRecords(values), ServiceTopics(values), Applications(values)
        twins = Twins()
        try:
            while made < enough and twins.turns < TURNS:
                values.now_ms = twins.now_ms
                records = [poll.record() for _ in range(POLL)] + liars.records()
                own = [told.record() for _ in range(TOLD)] + liars.told()
                values.random.shuffle(records)
                values.random.shuffle(own)
                twins.turn(records, own)
                made += len(records) + len(own)
        except Exception as error:
            error.add_note(f"CAUGHTUP_FUZZ_SEED={seed}, turn {twins.turns}")
            raise
        refused += twins.refused.total() + sum(twins.beset.refused.counts.values())
        longest = max(longest, twins.longest_turn_seconds)
        seed += 1
    assert longest < LONGEST_TURN_SECONDS
    seconds = time.monotonic() - began
    return (
        f"{made:,} records, {refused:,} refused, {seconds:.0f} s, "
        f"longest turn {longest * 1000:.0f} ms"
    )


def test_hostile_records_harm_no_group_but_their_own() -> None:
    print(fuzz(int(os.environ.get("CAUGHTUP_FUZZ_SEED", "1")), daily(8_000, 20_000)))


def test_the_fuzzing_finds_what_brought_the_service_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """An offset sum that fits nowhere, with which one member of one group killed everything."""
    monkeypatch.setattr(user_data, "_sum", lambda number: number)
    monkeypatch.setattr(offset_sums, "_in_long", lambda number: number)
    with pytest.raises(FaultsError, match="OverflowError"):
        fuzz(8, 20_000)  # not every seed comes to one within so few records


def test_the_fuzzing_finds_a_group_that_is_harmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids of topics that anybody may claim, by which others' assignments name them."""

    def believe(
        topics: TopicNames, topic: str, topic_id: bytes, *, confirmed: bool = False
    ) -> bool:
        topics.names[topic_id] = topic
        return True

    monkeypatch.setattr(TopicNames, "learn", believe)
    with pytest.raises(AssertionError, match="of billing"):
        fuzz(1, 20_000)


@pytest.mark.thorough
@pytest.mark.timeout(7_200)
def test_a_million_hostile_records_harm_no_group_but_their_own() -> None:
    seed = int(os.environ.get("CAUGHTUP_FUZZ_SEED", secrets.randbelow(1 << 32)))
    print(f"seed {seed}")
    print(fuzz(seed, RECORDS))
