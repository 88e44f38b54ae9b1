from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caughtup.models.errors import DecodeError
from caughtup.models.wire.reader import Reader
from tests.models.wire.strategies import thorough
from tests.support import wire


def code_of(failure: pytest.ExceptionInfo[DecodeError]) -> str:
    return failure.value.code


def test_integers_are_big_endian_and_signed():
    reader = Reader(struct.pack(">bhiq", -1, -2, -3, -4))
    assert [reader.int8(), reader.int16(), reader.int32(), reader.int64()] == [-1, -2, -3, -4]
    assert reader.remaining() == 0


@thorough
@given(st.integers(0, (1 << 35) - 1))
def test_an_unsigned_varint_reads_back(value):
    reader = Reader(wire.uvarint(value))
    assert reader.uvarint() == value
    reader.expect_end()


def test_a_varint_of_six_bytes_is_refused():
    with pytest.raises(DecodeError) as failure:
        Reader(b"\x80\x80\x80\x80\x80\x01").uvarint()
    assert code_of(failure) == "bad_length"


def test_a_varint_that_ends_early_is_truncated():
    with pytest.raises(DecodeError) as failure:
        Reader(b"\x80\x80").uvarint()
    assert code_of(failure) == "truncated"


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("text", ["", "orders", "Aufträge", "注文", "🛒"])
def test_strings_read_back_in_both_forms(text, flexible):
    reader = Reader(wire.string(text, flexible) + wire.string(None, flexible), flexible=flexible)
    assert reader.string() == text
    assert reader.nullable_string() is None
    reader.expect_end()


@pytest.mark.parametrize("flexible", [False, True])
def test_byte_strings_read_back_in_both_forms(flexible):
    data = wire.byte_string(b"\xff\x00", flexible) + wire.byte_string(None, flexible)
    reader = Reader(data, flexible=flexible)
    assert reader.byte_string() == b"\xff\x00"
    assert reader.nullable_byte_string() is None
    reader.expect_end()


@pytest.mark.parametrize("flexible", [False, True])
@pytest.mark.parametrize("read", [Reader.string, Reader.byte_string])
def test_null_where_the_field_may_not_be_null_is_refused(read, flexible):
    null = (
        wire.string(None, flexible) if read is Reader.string else wire.byte_string(None, flexible)
    )
    with pytest.raises(DecodeError) as failure:
        read(Reader(null, flexible=flexible))
    assert code_of(failure) == "bad_length"


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (struct.pack(">h", 32767) + b"short", Reader.string),
        (struct.pack(">i", 2147483647) + b"short", Reader.byte_string),
        (struct.pack(">H", 65535) + b"short", Reader.modified_utf),
        (struct.pack(">i", 2147483647), lambda reader: reader.array_length(1)),
        (struct.pack(">i", 2147483647), lambda reader: reader.rows(struct.Struct(">iq"))),
    ],
)
def test_a_length_beyond_the_bytes_left_is_refused_at_once(data, read):
    with pytest.raises(DecodeError) as failure:
        read(Reader(data))
    assert code_of(failure) == "bad_length"


def test_an_error_says_where_and_how_much():
    reader = Reader(b"\x00\x01\x00")
    reader.int16()
    with pytest.raises(DecodeError, match="truncated: 8 bytes wanted at byte 2, 1 left"):
        reader.int64()


def test_bytes_that_are_not_utf8_are_refused():
    with pytest.raises(DecodeError) as failure:
        Reader(b"\x00\x02\xc3\x28").string()
    assert code_of(failure) == "bad_utf8"


@thorough
@given(st.text(max_size=30))
def test_javas_modified_utf_reads_back(text):
    reader = Reader(wire.modified_utf(text))
    assert reader.modified_utf() == text
    reader.expect_end()


@pytest.mark.parametrize(
    "raw", ["🛒".encode(), b"\xed\xa0\xb5", b"\xc3", b"\xff"], ids=["4-byte", "lone", "cut", "ff"]
)
def test_what_java_would_not_write_as_modified_utf_is_refused(raw):
    with pytest.raises(DecodeError) as failure:
        Reader(struct.pack(">H", len(raw)) + raw).modified_utf()
    assert code_of(failure) == "bad_utf8"


def test_tagged_fields_are_read_by_tag_and_a_classic_message_has_none():
    fields = {0: b"zero", 7: b"", 300: b"x" * 200}
    reader = Reader(wire.tagged_fields(fields), flexible=True)
    assert reader.tagged_fields() == fields
    reader.expect_end()
    assert Reader(b"\x01").tagged_fields() == {}


def test_more_tagged_fields_than_bytes_are_refused():
    with pytest.raises(DecodeError) as failure:
        Reader(wire.uvarint(1 << 31) + b"\x00\x00", flexible=True).tagged_fields()
    assert code_of(failure) == "bad_length"


def test_bytes_left_over_are_refused_where_a_format_ends():
    with pytest.raises(DecodeError) as failure:
        Reader(b"\x00").expect_end()
    assert code_of(failure) == "trailing"
