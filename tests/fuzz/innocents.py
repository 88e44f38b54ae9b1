"""The groups that nobody may harm: one of each protocol, that go on as groups do."""

from __future__ import annotations

from caughtup.models.ids import TopicPartition
from caughtup.models.polls.batch import Record
from tests.fuzz.values import CLICKS_ID
from tests.support.groups.new_groups import consumer_group, streams_group
from tests.support.groups.records import GROUP, SOURCE, commit, consumer_generation
from tests.support.groups.streams import CHANGELOG, HANDED_OVER, HANDING_OVER, WARMING, generation

PLAIN, BILLING, COUNTS = "plain", "billing", "counts"
INNOCENT = (PLAIN, GROUP, BILLING, COUNTS)
CLICKS = "clicks"
COUNTS_CHANGELOG = f"{COUNTS}-store-changelog"
_HANDOVER = (WARMING, HANDING_OVER, HANDED_OVER)
#: Between two generations of the application, in turns.
_GENERATION_TURNS = 7


def first_records() -> list[Record]:
    """Make what there is of them from the start."""
    return [
        consumer_generation(1, {"c": (TopicPartition(CLICKS, 0),)}, group=PLAIN),
        *consumer_group(BILLING, CLICKS, CLICKS_ID),
        *streams_group(COUNTS, CLICKS, COUNTS_CHANGELOG),
    ]


def ends_of_topics(turns: int) -> list[tuple[str, tuple[int, ...], bytes | None]]:
    """Return where their topics end after so many turns: topic, ends by partition, and its id."""
    came = 100 * turns
    return [
        (CLICKS, (500 + came, 300 + came), CLICKS_ID),
        (SOURCE, (900 + came, 900 + came), None),
        (CHANGELOG, (50_000, 50_000), None),
        (COUNTS_CHANGELOG, (70 + came, 70), None),
    ]


def next_records(turns: int, now_ms: int) -> list[Record]:
    """Make what they commit in a turn, and now and then the application's next generation."""
    came = 100 * turns
    behind = {PLAIN: 7, GROUP: 40 * (turns % 5), BILLING: 0, COUNTS: 3}
    records: list[Record] = [
        commit(
            partition,
            200 + came - late,
            topic=SOURCE if group == GROUP else CLICKS,
            group=group,
            at_ms=now_ms - 10,
            topic_id=None if group == GROUP else CLICKS_ID,
        )
        for group, late in behind.items()
        for partition in range(2)
    ]
    number, rest = divmod(turns, _GENERATION_TURNS)
    if not rest:
        members = _HANDOVER[number % len(_HANDOVER)]
        records.append(generation(number, *members, at_ms=now_ms - 20))
    return records
