from __future__ import annotations

import pytest

from caughtup.models.errors import DecodeError
from caughtup.models.wire.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    ConsumerGroupTargetAssignmentMember,
    TopicPartitions,
    decode_consumer_group_record,
)
from caughtup.models.wire.record_keys import RecordType
from tests.support import wire
from tests.support.groups.new_group_encoders import VERSION_0, new_group_record

TOPIC_ID = b"0123456789abcdef"


def test_a_member_on_the_classic_protocol_is_read_as_written_out_by_hand():
    data = (
        VERSION_0
        + b"\x00\x03r1\x04c-1\x05/127\x02\x03t1\x00\x00\x00\xea\x60\x08uniform\x01"
        + b"\x00\x13\x01\x00\x00\xaf\xc8\x02\x06range\x05\x00\x01\x02\x03\x00\x00"
    )
    member = decode_consumer_group_record(RecordType.CONSUMER_GROUP_MEMBER_METADATA, data)
    assert member == ConsumerGroupMemberMetadata(
        instance_id=None,
        rack_id="r1",
        client_id="c-1",
        client_host="/127",
        subscribed_topic_names=("t1",),
        subscribed_topic_regex=None,
        rebalance_timeout_ms=60_000,
        server_assignor="uniform",
        classic_member_metadata=ClassicMemberMetadata(45_000, {"range": b"\0\1\2\3"}),
    )


def test_a_member_whose_classic_metadata_is_null_has_none():
    member = ConsumerGroupMemberMetadata(None, None, "c", "h", (), None, 1, None, None)
    unset = new_group_record(member)
    null = unset[:-1] + wire.tagged_fields({0: b"\x00"})
    for data in (unset, null):
        assert decode_consumer_group_record(RecordType(5), data) == member


def test_epochs_of_an_assignment_may_be_there_null_or_left_out():
    def written(tags: dict[int, bytes]) -> bytes:
        topic = TOPIC_ID + wire.array([wire.number("i", 7)], True) + wire.tagged_fields(tags)
        numbers = wire.number("i", 3) + wire.number("i", 2) + wire.number("b", 1)
        return VERSION_0 + numbers + wire.array([topic], True) + wire.array([], True) + b"\x00"

    def read(data: bytes) -> tuple[int, ...]:
        value = decode_consumer_group_record(RecordType(8), data)
        assert isinstance(value, ConsumerGroupCurrentMemberAssignment)
        (partitions,) = value.assigned_partitions
        assert (value.member_epoch, value.previous_member_epoch, value.state) == (3, 2, 1)
        assert partitions.partitions == (7,)
        return partitions.assignment_epochs

    assert read(written({})) == ()
    assert read(written({0: b"\x00"})) == ()
    assert read(written({0: wire.array([wire.number("i", 2)], True)})) == (2,)


def test_a_target_assignment_has_no_epochs_and_leaves_that_tag_alone():
    topic = TOPIC_ID + wire.array([], True) + wire.tagged_fields({0: b"of a later release"})
    data = VERSION_0 + wire.array([topic], True) + b"\x00"
    value = decode_consumer_group_record(RecordType(7), data)
    assert value == ConsumerGroupTargetAssignmentMember((TopicPartitions(TOPIC_ID, ()),))


@pytest.mark.parametrize("size", [0, 3, 7, 9])
def test_a_tagged_field_of_another_size_than_its_type_is_refused(size):
    whole = new_group_record(ConsumerGroupMetadata(3, 0))
    data = whole[:-1] + wire.tagged_fields({0: bytes(size)})
    with pytest.raises(DecodeError):
        decode_consumer_group_record(RecordType.CONSUMER_GROUP_METADATA, data)


def test_a_record_of_another_kind_of_group_is_a_mistake_of_the_caller():
    with pytest.raises(KeyError):
        decode_consumer_group_record(RecordType.STREAMS_GROUP_METADATA, VERSION_0)
