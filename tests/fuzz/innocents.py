"""The groups that nobody may harm: one of each protocol, that go on as groups do."""

from __future__ import annotations

from caughtup.models.ids import TopicPartition
from caughtup.models.polls.batch import Record
from caughtup.models.wire.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    TopicPartitions,
)
from caughtup.models.wire.consumer_offsets import OffsetCommit, OffsetKey
from caughtup.models.wire.record_keys import (
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    RecordType,
    StreamsGroupKey,
    StreamsGroupMemberKey,
)
from caughtup.models.wire.streams_group_assignments import (
    StreamsGroupCurrentMemberAssignment,
    TaskIds,
)
from caughtup.models.wire.streams_group_records import (
    StreamsGroupMemberMetadata,
    StreamsGroupMetadata,
)
from caughtup.models.wire.streams_group_topology import StreamsGroupTopology, Subtopology, TopicInfo
from tests.fuzz.values import CLICKS_ID
from tests.models.wire.new_group_encoders import new_group_key, new_group_record
from tests.support import wire
from tests.support.group_records import GROUP, SOURCE, consumer_generation
from tests.support.streams import CHANGELOG, HANDED_OVER, HANDING_OVER, WARMING, generation

PLAIN, BILLING, COUNTS = "plain", "billing", "counts"
INNOCENT = (PLAIN, GROUP, BILLING, COUNTS)
CLICKS = "clicks"
COUNTS_CHANGELOG = f"{COUNTS}-store-changelog"
_PROCESS = "5f2c6a4e-0000-4000-8000-000000000009"
_HANDOVER = (WARMING, HANDING_OVER, HANDED_OVER)
#: Between two generations of the application, in turns.
_GENERATION_TURNS = 7


def first_records() -> list[Record]:
    """Make what there is of them from the start."""
    process = StreamsGroupMemberMetadata(None, None, "c", "/h", 1, 1, _PROCESS, None, {})
    changelog = TopicInfo(COUNTS_CHANGELOG, 0, 0, {})
    topology = StreamsGroupTopology(1, (Subtopology("0", (CLICKS,), (), (changelog,), (), (), ()),))
    tasks = (TaskIds("0", (0, 1)),)
    member = ConsumerGroupMemberMetadata(
        None, None, "c", "/h", (CLICKS,), None, 300_000, None, None
    )
    held = (TopicPartitions(CLICKS_ID, (0, 1)),)
    types = RecordType
    return [
        consumer_generation(1, {"c": (TopicPartition(CLICKS, 0),)}, group=PLAIN),
        *(
            (new_group_key(key), new_group_record(value))
            for key, value in (
                (
                    ConsumerGroupKey(types.CONSUMER_GROUP_METADATA, BILLING),
                    ConsumerGroupMetadata(3, 0),
                ),
                (
                    ConsumerGroupMemberKey(types.CONSUMER_GROUP_MEMBER_METADATA, BILLING, "m"),
                    member,
                ),
                (
                    ConsumerGroupMemberKey(
                        types.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, BILLING, "m"
                    ),
                    ConsumerGroupCurrentMemberAssignment(3, 2, 0, held, ()),
                ),
                (
                    StreamsGroupKey(types.STREAMS_GROUP_METADATA, COUNTS),
                    StreamsGroupMetadata(4, 0, 1, {}, -1, -1),
                ),
                (StreamsGroupKey(types.STREAMS_GROUP_TOPOLOGY, COUNTS), topology),
                (
                    StreamsGroupMemberKey(types.STREAMS_GROUP_MEMBER_METADATA, COUNTS, "m"),
                    process,
                ),
                (
                    StreamsGroupMemberKey(
                        types.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, COUNTS, "m"
                    ),
                    StreamsGroupCurrentMemberAssignment(4, 3, 1, tasks, (), tasks, (), (), ()),
                ),
            )
        ),
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
        (
            wire.offset_key(OffsetKey(group, SOURCE if group == GROUP else CLICKS, partition)),
            wire.offset_commit(
                OffsetCommit(200 + came - late, 1, "", now_ms - 10, -1, topic_id), 4
            ),
        )
        for group, late in behind.items()
        for partition in range(2)
        for topic_id in (None if group == GROUP else CLICKS_ID,)
    ]
    number, rest = divmod(turns, _GENERATION_TURNS)
    if not rest:
        members = _HANDOVER[number % len(_HANDOVER)]
        records.append(generation(number, *members, at_ms=now_ms - 20))
    return records
