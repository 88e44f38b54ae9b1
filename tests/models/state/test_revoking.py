"""Since when a member of a group on the new protocol has had to revoke partitions."""

from __future__ import annotations

import pytest

from caughtup.models.polls.batch import Record, decode_batch
from caughtup.models.records.fields import ABSENT
from caughtup.models.shown.consumer_group import AssignedMember, explain_consumer_group
from caughtup.models.state.cluster import ClusterState
from caughtup.models.wire.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignment,
    TopicPartitions,
)
from caughtup.models.wire.record_keys import ConsumerGroupMemberKey, RecordType
from tests.support.groups.coordinator import AT_MS, PlayedGroup, know
from tests.support.groups.new_group_encoders import new_group_key, new_group_record

T = b"t" * 16


@pytest.fixture
def played() -> PlayedGroup:
    return PlayedGroup("g", topics={"t": (T, 4)})


@pytest.fixture
def state(played: PlayedGroup) -> ClusterState:
    found = ClusterState("c", {})
    know(found, played)
    return found


def current(member: str, held: tuple[int, ...], pending: tuple[int, ...]) -> Record:
    key = ConsumerGroupMemberKey(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, "g", member)
    value = ConsumerGroupCurrentMemberAssignment(
        2, 1, 1, (TopicPartitions(T, held),), (TopicPartitions(T, pending),)
    )
    return new_group_key(key), new_group_record(value)


def explained(state: ClusterState, member: str) -> AssignedMember:
    found = explain_consumer_group(state, "g")
    assert found is not None
    return next(one for one in found.members if one.member == member)


def test_it_counts_from_the_record_on_by_which_the_member_has_to(
    played: PlayedGroup, state: ClusterState
) -> None:
    played.join("a", ["t"])
    played.join("b", ["t"])
    state.apply_batch(decode_batch(played.take()), AT_MS)
    state.apply_batch(decode_batch([current("a", (0, 1), (2, 3))]), AT_MS + 1_000)
    state.apply_batch(decode_batch([current("b", (), ())]), AT_MS + 2_000)
    one = explained(state, "a")
    assert (one.revokes, one.revokes_since_ms) == ([("t", 2), ("t", 3)], AT_MS + 1_000)
    other = explained(state, "b")
    assert (other.revokes, other.revokes_since_ms) == ([], ABSENT)
    assert other.awaits == [("t", 2), ("t", 3)]
    state.apply_batch(decode_batch([current("a", (0, 1), ())]), AT_MS + 3_000)
    assert explained(state, "a").revokes_since_ms is ABSENT


def test_who_had_to_before_the_service_read_on_is_not_timed(
    played: PlayedGroup, state: ClusterState
) -> None:
    played.join("a", ["t"])
    played.join("b", ["t"])
    past = [*played.take(), current("a", (0, 1), (2, 3))]
    state.apply_batch(decode_batch(past), AT_MS, past=True)
    state.apply_batch(decode_batch([current("b", (), ())]), AT_MS + 2_000)
    assert explained(state, "a").revokes == [("t", 2), ("t", 3)]
    assert explained(state, "a").revokes_since_ms is ABSENT
