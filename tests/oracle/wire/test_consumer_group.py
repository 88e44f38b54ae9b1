"""KIP-848's records, as the published coordinator writes and reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.wire.consumer_group_records import decode_consumer_group_record
from caughtup.models.wire.consumer_offsets import decode_key
from caughtup.models.wire.record_keys import RecordType
from tests.models.wire.new_group_strategies import CONSUMER_GROUP_RECORDS, NEW_GROUP_KEYS
from tests.models.wire.strategies import thorough
from tests.oracle.wire.records import assert_damaged_read_alike, assert_read_as_written

# A removed one, one that was announced: neither has a class in this release.
NOT_PUBLISHED = {
    RecordType.SHARE_GROUP_PARTITION_METADATA,
    RecordType.STREAMS_GROUP_PARTITION_METADATA,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_RESOLVED_TOPIC_IDS,
}
every_type = pytest.mark.parametrize("record_type", CONSUMER_GROUP_RECORDS)


def test_types_have_the_coordinators_names_and_numbers(coordinator):
    ours = {kind.name: int(kind) for kind in RecordType if kind not in NOT_PUBLISHED}
    assert coordinator.record_types() == ours


@pytest.mark.parametrize("record_type", sorted(set(NEW_GROUP_KEYS) - NOT_PUBLISHED))
@thorough
@given(st.data())
def test_keys_of_each_type_are_read_as_the_coordinator_writes_them(coordinator, record_type, data):
    key = data.draw(NEW_GROUP_KEYS[record_type])
    read = decode_key(coordinator.write_key(key))
    assert (type(read), read) == (type(key), key)


@every_type
@thorough
@given(st.data(), st.booleans())
def test_values_are_read_as_the_coordinator_writes_them(coordinator, record_type, data, unset):
    value = data.draw(CONSUMER_GROUP_RECORDS[record_type])
    assert_read_as_written(coordinator, record_type, value, unset, decode_consumer_group_record)


@every_type
@thorough
@given(st.data())
def test_damaged_values_are_refused_or_read_as_the_coordinator_reads_them(
    coordinator, record_type, data
):
    values = CONSUMER_GROUP_RECORDS[record_type]
    assert_damaged_read_alike(coordinator, data, record_type, values, decode_consumer_group_record)
