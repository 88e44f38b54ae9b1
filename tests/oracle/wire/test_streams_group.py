"""KIP-1071's records, as the published coordinator writes and reads them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.wire.record_keys import RecordType
from caughtup.models.wire.streams_group_records import (
    StreamsGroupMetadata,
    decode_streams_group_record,
)
from tests.models.wire.new_group_strategies import STREAMS_GROUP_RECORDS
from tests.models.wire.strategies import thorough
from tests.oracle.wire.records import assert_damaged_read_alike, assert_read_as_written

# A removed one, and one that was announced: neither has a class in this release.
NOT_PUBLISHED = {
    RecordType.STREAMS_GROUP_PARTITION_METADATA,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_RESOLVED_TOPIC_IDS,
}
every_type = pytest.mark.parametrize(
    "record_type", sorted(set(STREAMS_GROUP_RECORDS) - NOT_PUBLISHED)
)


def of_this_release(value: Any) -> Any:
    """Remove fields that this release doesn't know yet."""
    if not isinstance(value, StreamsGroupMetadata):
        return value
    return dataclasses.replace(
        value, stored_description_topology_epoch=-1, failed_description_topology_epoch=-1
    )


@every_type
@thorough
@given(st.data(), st.booleans())
def test_values_are_read_as_the_coordinator_writes_them(coordinator, record_type, data, unset):
    value = of_this_release(data.draw(STREAMS_GROUP_RECORDS[record_type]))
    assert_read_as_written(coordinator, record_type, value, unset, decode_streams_group_record)


@every_type
@thorough
@given(st.data())
def test_damaged_values_are_refused_or_read_as_the_coordinator_reads_them(
    coordinator, record_type, data
):
    values = STREAMS_GROUP_RECORDS[record_type]
    assert_damaged_read_alike(coordinator, data, record_type, values, decode_streams_group_record)
