from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.errors import DecodeError
from caughtup.models.wire.reader import FlexibleReader, open_value, tagged_field
from tests.models.wire.new_group_strategies import int16
from tests.models.wire.strategies import int32, names, thorough
from tests.support import wire


@thorough
@given(
    st.lists(names), st.lists(int16), st.lists(int32), st.lists(st.binary(min_size=16, max_size=16))
)
def test_arrays_read_back_one_after_the_other(texts, shorts, numbers, uuids):
    data = b"".join(
        wire.array(elements, flexible=True)
        for elements in (
            (wire.string(text, flexible=True) for text in texts),
            (wire.number("h", short) for short in shorts),
            (wire.number("i", number) for number in numbers),
            uuids,
        )
    )
    reader = FlexibleReader(data)
    read = (reader.strings(), reader.int16s(), reader.int32s(), reader.uuids())
    assert read == (tuple(texts), tuple(shorts), tuple(numbers), tuple(uuids))
    reader.expect_end()


def test_the_last_of_two_values_of_a_key_counts():
    reader = FlexibleReader(b"\x03\x02k\x02a\x00\x02k\x02b\x00")
    assert reader.entries() == {"k": "b"}


@pytest.mark.parametrize(
    ("raw", "expected"), [(b"\x00", ()), (b"\x01", ()), (b"\x02\x00\x00\x00\x05", (5,))]
)
def test_an_array_that_may_be_null_is_empty_then(raw, expected):
    reader = FlexibleReader(raw)
    assert reader.nullable_int32s() == expected
    reader.expect_end()


def test_null_is_refused_where_a_schema_has_none():
    with pytest.raises(DecodeError, match="bad_length: an array may not be null"):
        FlexibleReader(b"\x00").int32s()


@pytest.mark.parametrize("read", ["strings", "int16s", "int32s", "uuids", "entries"])
def test_a_claim_of_a_billion_elements_is_refused_before_any_is_read(read):
    claim = b"\x81\x94\xeb\xdc\x03" + bytes(15)
    reader = FlexibleReader(claim)
    with pytest.raises(DecodeError, match="bad_length: 1000000000 elements claimed"):
        getattr(reader, read)()


def test_a_tagged_field_is_read_whole_or_refused():
    fields = {0: b"\x00\x00\x00\x05", 1: b"\x00\x00\x00\x05\x00", 2: b"\x00"}
    assert tagged_field(fields, 0, FlexibleReader.int32) == 5
    assert tagged_field(fields, 9, FlexibleReader.int32) is None
    for tag, code in ((1, "trailing"), (2, "truncated")):
        with pytest.raises(DecodeError, match=code):
            tagged_field(fields, tag, FlexibleReader.int32)


def test_a_value_is_opened_after_its_version():
    assert open_value(b"\x00\x00\x07", "a record").int8() == 7
    with pytest.raises(DecodeError, match="unknown_version: a record version 1"):
        open_value(b"\x00\x01\x07", "a record")
    with pytest.raises(DecodeError, match="truncated"):
        open_value(b"\x00", "a record")
