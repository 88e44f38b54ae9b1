from __future__ import annotations

from caughtup.models.wire.streams_group_assignments import (
    StreamsGroupCurrentMemberAssignment,
    StreamsGroupTargetAssignmentMember,
    StreamsGroupTargetAssignmentMetadata,
    StreamsGroupTargetAssignmentResolvedTopicIds,
    TaskIds,
    decode_current_member_assignment,
    decode_resolved_topic_ids,
    decode_target_assignment_member,
    decode_target_assignment_metadata,
)
from tests.support.groups.new_group_encoders import VERSION_0

NONE = b"\x01"
NO_TAGS = b"\x00"
TASKS_0_1_AND_0_2 = b"\x020\x03\x00\x00\x00\x01\x00\x00\x00\x02"


def test_what_a_member_should_have_is_read_by_role():
    active = b"\x02" + TASKS_0_1_AND_0_2 + NO_TAGS
    warmup = b"\x02\x021\x02\x00\x00\x00\x05" + NO_TAGS
    data = VERSION_0 + active + NONE + warmup + NO_TAGS
    assert decode_target_assignment_member(data) == StreamsGroupTargetAssignmentMember(
        active_tasks=(TaskIds("0", (1, 2)),), standby_tasks=(), warmup_tasks=(TaskIds("1", (5,)),)
    )


def test_what_a_member_should_have_carries_no_epochs_and_leaves_that_tag_alone():
    later = b"\x01\x00\x05later"
    data = VERSION_0 + b"\x02" + TASKS_0_1_AND_0_2 + later + NONE + NONE + NO_TAGS
    value = decode_target_assignment_member(data)
    assert value.active_tasks == (TaskIds("0", (1, 2)),)


def test_what_a_member_has_is_read_with_the_epochs_of_its_active_tasks():
    epochs = b"\x01\x00\x09\x03\x00\x00\x00\x07\x00\x00\x00\x08"
    numbers = b"\x00\x00\x00\x08\x00\x00\x00\x07\x02"
    active = b"\x02" + TASKS_0_1_AND_0_2 + epochs
    standby = b"\x02\x021\x02\x00\x00\x00\x05" + NO_TAGS
    revoked = b"\x02\x022\x02\x00\x00\x00\x00" + NO_TAGS
    data = VERSION_0 + numbers + active + standby + NONE + NONE + revoked + NONE + NO_TAGS
    assert decode_current_member_assignment(data) == StreamsGroupCurrentMemberAssignment(
        member_epoch=8,
        previous_member_epoch=7,
        state=2,
        active_tasks=(TaskIds("0", (1, 2), (7, 8)),),
        standby_tasks=(TaskIds("1", (5,)),),
        warmup_tasks=(),
        active_tasks_pending_revocation=(),
        standby_tasks_pending_revocation=(TaskIds("2", (0,)),),
        warmup_tasks_pending_revocation=(),
    )


def test_the_target_assignments_time_is_0_where_the_broker_did_not_write_it():
    epoch, time = b"\x00\x00\x00\x07", b"\x01\x00\x08\x00\x00\x01\x93\x4a\x00\x00\x00"
    expected = StreamsGroupTargetAssignmentMetadata(7, 0)
    assert decode_target_assignment_metadata(VERSION_0 + epoch + NO_TAGS) == expected
    expected = StreamsGroupTargetAssignmentMetadata(7, 0x01934A000000)
    assert decode_target_assignment_metadata(VERSION_0 + epoch + time) == expected


def test_resolved_topic_ids_are_read_by_subtopology():
    first, second = b"0123456789abcdef", b"fedcba9876543210"
    subtopology = b"\x020\x03" + first + second + NO_TAGS
    data = VERSION_0 + b"\x00\x00\x00\x07\x02" + subtopology + NO_TAGS
    expected = StreamsGroupTargetAssignmentResolvedTopicIds(7, {"0": (first, second)})
    assert decode_resolved_topic_ids(data) == expected
