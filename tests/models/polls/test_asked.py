"""Changes between answers, applied one after the other, are what was answered last."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.polls.asked import AskedGroups, TopicOffsets
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.consumer_group_records import ConsumerGroupMetadata
from caughtup.models.wire.consumer_offsets import GroupKey, OffsetKey
from caughtup.models.wire.group_metadata import ConsumerSubscription, GroupMember, GroupMetadata
from caughtup.models.wire.record_keys import ConsumerGroupKey, RecordType
from tests.models.wire.strategies import thorough
from tests.support import wire

COMMITS = st.dictionaries(
    st.sampled_from(["orders", "päckchen"]),
    st.dictionaries(st.integers(0, 5), st.integers(0, 2**62), max_size=5),
    max_size=2,
)
ANSWERS = st.lists(st.dictionaries(st.sampled_from("abc"), COMMITS, max_size=3), max_size=6)


def offsets(committed: dict[str, dict[int, int]]) -> list[TopicOffsets]:
    """Return a group's commits as an answer has them."""
    found = []
    for topic, by_number in sorted(committed.items()):
        rows = np.array(sorted(by_number.items()), np.int64).reshape(-1, 2)
        found.append(TopicOffsets(topic, rows[:, 0], rows[:, 1]))
    return found


def member(name: str = "m", generation: int = -1) -> GroupMember:
    said = wire.subscription(ConsumerSubscription(2, ("orders",), None, (), generation, None))
    return GroupMember(name, None, "c", "/h", -1, -1, said, b"")


def metadata(*members: GroupMember) -> GroupMetadata:
    return GroupMetadata("consumer", -1, "range" if members else None, None, -1, members)


def told(known: AskedGroups, *members: GroupMember) -> GroupMetadata | None:
    """Take in a classic group; return the record that follows from it, None without one."""
    known.described("g", {GroupKey("g"): metadata(*members)}, 1)
    return known.take().groups.get("g")


@thorough
@given(answers=ANSWERS)
def test_the_commits_are_those_of_the_last_answers(
    answers: list[dict[str, dict[str, dict[int, int]]]],
) -> None:
    known, state = AskedGroups(), ClusterState("c", {})
    there: dict[OffsetKey, int] = {}
    for at_ms, answer in enumerate(answers, 1_700_000_000_000):
        for group, committed in answer.items():
            known.committed(group, offsets(committed), at_ms)
        for group in known.names() - answer.keys():
            known.gone(group)
        batch = known.take()
        assert not batch.errors
        for key, commit in batch.commits.by_key().items():
            if commit is None:
                del there[key]
            else:
                assert there.get(key) != commit.offset, "nothing has changed"
                assert commit.commit_timestamp_ms == at_ms
                there[key] = commit.offset
        state.apply_batch(batch, at_ms)
        assert there == {
            OffsetKey(group, topic, number): offset
            for group, committed in answer.items()
            for topic, by_number in committed.items()
            for number, offset in by_number.items()
        }
        assert {(g, *p): c.committed for g, p, c in state.commits} == {
            tuple(key): offset for key, offset in there.items()
        }


def test_what_is_as_before_is_no_change() -> None:
    known = AskedGroups()
    assert told(known, member()) is not None
    assert told(known, member()) is None
    known.committed("g", offsets({"orders": {0: 7}}), 1)
    assert len(known.take().commits.head) == 1
    known.committed("g", offsets({"orders": {0: 7}}), 2)
    assert len(known.take().commits.head) == 0


def test_a_generation_is_one_more_than_members_say_that_they_were_in() -> None:
    known = AskedGroups()
    numbers = [
        found.generation
        for found in (
            told(known, member()),
            told(known, member("m", 41), member("n", 40)),
            told(known, member("m", 41)),  # none says so: one more than the last
            told(known),
        )
        if found is not None
    ]
    assert numbers == [1, 42, 43, 44]


def test_an_unreadable_subscription_says_nothing() -> None:
    found = told(
        AskedGroups(), GroupMember("m", None, "c", "/h", -1, -1, b"\0", b""), member("n", 7)
    )
    assert found is not None
    assert found.generation == 8


def test_a_group_that_changed_its_protocol_loses_its_former_record() -> None:
    known = AskedGroups()
    told(known, member())
    key = ConsumerGroupKey(RecordType.CONSUMER_GROUP_METADATA, "g")
    known.described("g", {key: ConsumerGroupMetadata(3, 0)}, 1)
    batch = known.take()
    assert batch.groups == {"g": None}
    assert batch.consumer_group_records == {key: ConsumerGroupMetadata(3, 0)}


def test_a_group_that_is_gone_leaves_nothing() -> None:
    known, state = AskedGroups(), ClusterState("c", {})
    told_first: Any = metadata(member())
    known.described("g", {GroupKey("g"): told_first}, 1)
    known.committed("g", offsets({"orders": {0: 7}}), 1)
    state.apply_batch(known.take(), 1)
    assert state.group_names() == ["g"]
    known.gone("g")
    known.gone("g")
    state.apply_batch(known.take(), 2)
    assert state.group_names() == []
    assert known.names() == set()


def test_commits_that_could_not_be_answered_about_stay() -> None:
    known, state = AskedGroups(), ClusterState("c", {})
    known.committed("g", offsets({"orders": {0: 1, 1: 1, 2: 1}, "clicks": {0: 1}}), 1)
    known.committed("g", offsets({"orders": {1: 2, 3: 2}}), 2, whole=False)
    state.apply_batch(known.take(), 2)
    there = {(topic, number): one.committed for _, (topic, number), one in state.commits}
    assert there == {
        ("clicks", 0): 1,
        ("orders", 0): 1,
        ("orders", 1): 2,
        ("orders", 2): 1,
        ("orders", 3): 2,
    }
    known.committed("g", offsets({"orders": {1: 2}}), 3)
    state.apply_batch(known.take(), 3)
    assert [(topic, number) for _, (topic, number), _ in state.commits] == [("orders", 1)]
