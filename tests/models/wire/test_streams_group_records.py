from __future__ import annotations

import pytest

from caughtup.models.wire.record_keys import RecordType
from caughtup.models.wire.streams_group_records import (
    Endpoint,
    StreamsGroupMemberMetadata,
    StreamsGroupMetadata,
    decode_streams_group_record,
)
from tests.support.groups.new_group_encoders import VERSION_0


def test_a_member_is_read_as_written_out_by_hand():
    data = (
        VERSION_0
        + b"\x00\x03r1\x04c-1\x05/127\x00\x04\x93\xe0\x00\x00\x00\x02\x04p-1"
        + b"\x01\x05host\x9c\x40\x00"
        + b"\x02\x05zone\x02a\x00"
        + b"\x00"
    )
    member = decode_streams_group_record(RecordType.STREAMS_GROUP_MEMBER_METADATA, data)
    assert member == StreamsGroupMemberMetadata(
        instance_id=None,
        rack_id="r1",
        client_id="c-1",
        client_host="/127",
        rebalance_timeout_ms=300_000,
        topology_epoch=2,
        process_id="p-1",
        user_endpoint=Endpoint("host", 40_000),
        client_tags={"zone": "a"},
    )


def test_a_groups_tagged_fields_are_read_as_written_out_by_hand():
    numbers = b"\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x09"
    plain = StreamsGroupMetadata(5, 9, -1, {}, -1, -1)
    tagged = (
        b"\x04\x00\x04\x00\x00\x00\x01\x01\x05\x02\x02k\x01\x00\x02\x04\0\0\0\x02\x03\x04\0\0\0\x03"
    )
    full = StreamsGroupMetadata(5, 9, 1, {"k": ""}, 2, 3)
    null = b"\x01\x01\x01\x00"
    for tags, expected in ((b"\x00", plain), (tagged, full), (null, plain)):
        data = VERSION_0 + numbers + tags
        assert decode_streams_group_record(RecordType.STREAMS_GROUP_METADATA, data) == expected


def test_a_record_of_another_kind_of_group_is_a_mistake_of_the_caller():
    with pytest.raises(KeyError):
        decode_streams_group_record(RecordType.CONSUMER_GROUP_METADATA, VERSION_0)
