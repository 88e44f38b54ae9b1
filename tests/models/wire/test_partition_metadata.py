from __future__ import annotations

import pytest

from caughtup.models.errors import DecodeError
from caughtup.models.wire.partition_metadata import (
    ConsumerGroupPartitionMetadata,
    StreamsGroupPartitionMetadata,
    TopicMetadata,
    decode_consumer_group_partition_metadata,
    decode_streams_group_partition_metadata,
)
from tests.support.groups.new_group_encoders import VERSION_0

TOPIC_ID = b"0123456789abcdef"
RACKS = b"\x02\x00\x00\x00\x00\x03\x02a\x02b\x00"
ORDERS = b"\x02" + TOPIC_ID + b"\x07orders\x00\x00\x00\x03" + RACKS + b"\x00"


def test_both_kinds_of_groups_topics_are_read_as_written_out_by_hand():
    topics = (TopicMetadata(TOPIC_ID, "orders", 3, {0: ("a", "b")}),)
    data = VERSION_0 + ORDERS + b"\x00"
    expected = ConsumerGroupPartitionMetadata(topics)
    assert decode_consumer_group_partition_metadata(data) == expected
    assert decode_streams_group_partition_metadata(data) == StreamsGroupPartitionMetadata(topics)


def test_a_topic_that_ends_before_its_tagged_fields_is_refused():
    with pytest.raises(DecodeError):
        decode_streams_group_partition_metadata(VERSION_0 + ORDERS[:-1])
