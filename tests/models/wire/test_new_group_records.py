"""Records of groups of the consumer and streams protocols: each type reads back, by its version."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.errors import DecodeError
from caughtup.models.wire.consumer_group_records import decode_consumer_group_record
from caughtup.models.wire.streams_group_records import decode_streams_group_record
from tests.models.wire.new_group_strategies import CONSUMER_GROUP_RECORDS, STREAMS_GROUP_RECORDS
from tests.models.wire.strategies import raw_bytes, thorough
from tests.support import wire
from tests.support.groups.new_group_encoders import new_group_record

TYPES = [
    pytest.param(record_type, decode, values, protocol, id=record_type.name)
    for records, decode, protocol in (
        (CONSUMER_GROUP_RECORDS, decode_consumer_group_record, "consumer"),
        (STREAMS_GROUP_RECORDS, decode_streams_group_record, "streams"),
    )
    for record_type, values in records.items()
]
every_type = pytest.mark.parametrize(("record_type", "decode", "values", "protocol"), TYPES)
# Tags beyond all that are known.
unknown_tags = st.dictionaries(st.integers(4, 300), raw_bytes, max_size=2)


@every_type
@thorough
@given(st.data())
def test_a_record_reads_back(record_type, decode, values, protocol, data):
    value = data.draw(values)
    assert decode(record_type, new_group_record(value)) == value


@every_type
@thorough
@given(st.data())
def test_unknown_tagged_fields_and_bytes_left_over_change_nothing(
    record_type, decode, values, protocol, data
):
    value = data.draw(values)
    raw = new_group_record(value, data.draw(unknown_tags)) + data.draw(st.binary(max_size=5))
    assert decode(record_type, raw) == value


@every_type
@pytest.mark.parametrize("version", [-1, 1, 32767])
def test_a_version_that_is_not_known_is_refused(record_type, decode, values, protocol, version):
    data = wire.number("h", version) + bytes(60)
    with pytest.raises(DecodeError, match=f"unknown_version: {protocol} group .*{version}"):
        decode(record_type, data)
