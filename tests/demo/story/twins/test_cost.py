"""What a fourth instance cost: copies, offsets, rebalances and waits, between two moments."""

from __future__ import annotations

from caughtup.demo.apps.restore_listener import RestoredCopy
from caughtup.demo.story.twins.grow import Cost, cost, foretold
from caughtup.models.groups.generation import StreamsGeneration, read_streams_generation
from caughtup.models.polls.batch import decode_batch
from tests.support.groups.records import GROUP
from tests.support.groups.streams import WARMING, Member, generation

STARTED_MS, ENDED_MS = 1_800_000_000_000, 1_800_000_080_000


def copy(started_ms: int, start: int, loaded: int | None, role: str = "standby") -> RestoredCopy:
    end = None if loaded is None else loaded + 1
    return RestoredCopy(role, "counts", "changelog", 0, start, end, loaded, started_ms, None, "")


def asking(number: int, at_ms: int, due_ms: int | None) -> StreamsGeneration:
    """Return a generation that asks for the next one at a time."""
    first, *others = WARMING
    member = Member(first.name, first.process, first.owned, first.sums, first.active, (), due_ms)
    batch = decode_batch([generation(number, member, *others, at_ms=at_ms)])
    metadata = batch.groups[GROUP]
    assert metadata is not None
    read = read_streams_generation(GROUP, metadata, {})
    assert read is not None
    return read


def test_only_what_began_since_counts_and_only_copies_of_something_that_was_not_there() -> None:
    restored = [
        copy(STARTED_MS - 1, 0, 4_999),  # before
        copy(STARTED_MS, 0, 4_999),
        copy(STARTED_MS + 9, 0, None),  # nothing came of it
        copy(STARTED_MS + 9, 5_000, 5_009, "active"),  # promoted, from what it had
    ]
    found = cost("orders", restored, [], STARTED_MS, ENDED_MS, True)
    assert found == Cost("orders", True, 80.0, 1, 5_010, 0, ())


def test_rebalances_that_were_asked_for_at_a_later_time_are_waits() -> None:
    generations = [
        asking(4, STARTED_MS - 5_000, STARTED_MS + 1_000),  # before: nobody waited since
        asking(5, STARTED_MS + 2_000, STARTED_MS + 62_000),
        asking(6, STARTED_MS + 62_500, 0),  # asks for the next at once
        asking(7, STARTED_MS + 64_000, STARTED_MS + 70_000),
        asking(8, STARTED_MS + 65_000, None),  # earlier than it was asked for
        asking(9, ENDED_MS + 1, None),
    ]
    found = cost("orders", [], generations, STARTED_MS, ENDED_MS, False, 18)
    assert (found.rebalances, found.waits_ms, found.waited_seconds) == (4, (60_500,), 60.5)
    assert (found.balanced, found.foretold) == (False, 18)


def test_copies_are_foretold_by_the_plan_that_is_carried_out() -> None:
    record = {"cost": {"copies": 6}, "kafka_cost": {"copies": 18}}
    assert (foretold(record, follows=True), foretold(record, follows=False)) == (6, 18)
    assert foretold({}, follows=True) is None
    assert foretold({"cost": {"copies": None}}, follows=True) is None
