"""Bounds-checked readers of the primitive types of Kafka's formats.

Integers are big-endian. A message is either classic (16-bit string lengths, 32-bit counts) or
flexible (KIP-482: unsigned varints, one more than the length, and tagged fields); a reader has this
as a flag, so that the same code reads a message's fields in both. The values of the newer protocols'
records are all flexible.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TypeVar

from caughtup.models.errors import DecodeError

_INT8 = struct.Struct(">b")
_INT16 = struct.Struct(">h")
_UINT16 = struct.Struct(">H")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_VARINT_BYTES = 5  # an unsigned varint of 32 bits


class Reader:
    """Reads fields one after the other; every method raises only DecodeError.

    Codes: ``truncated`` (the bytes end too early), ``bad_length`` (a length or count that is
    negative or exceeds the remaining bytes, refused before memory is allocated for it),
    ``bad_utf8``, ``trailing``. ``position`` is in bytes from the start of ``data``.
    """

    __slots__ = ("data", "flexible", "position")

    def __init__(self, data: bytes, *, flexible: bool = False) -> None:
        self.data = data
        self.position = 0
        self.flexible = flexible

    def remaining(self) -> int:
        """Return the number of bytes that are not read yet."""
        return len(self.data) - self.position

    def expect_end(self) -> None:
        """Raise DecodeError ``trailing`` unless everything has been read."""
        if self.remaining():
            raise DecodeError("trailing", f"{self.remaining()} bytes left over{self._at()}")

    def unpack(self, layout: struct.Struct) -> tuple[int, ...]:
        """Read fixed-width integers at once."""
        try:
            fields = layout.unpack_from(self.data, self.position)
        except struct.error:
            raise DecodeError(
                "truncated", f"{layout.size} bytes wanted{self._at()}, {self.remaining()} left"
            ) from None
        self.position += layout.size
        return fields

    def int8(self) -> int:
        """Read a signed byte."""
        return self.unpack(_INT8)[0]

    def int16(self) -> int:
        """Read a signed 16-bit integer."""
        return self.unpack(_INT16)[0]

    def int32(self) -> int:
        """Read a signed 32-bit integer."""
        return self.unpack(_INT32)[0]

    def int64(self) -> int:
        """Read a signed 64-bit integer."""
        return self.unpack(_INT64)[0]

    def uvarint(self) -> int:
        """Read an unsigned varint: seven bits a byte, the lowest first, at most five bytes."""
        value = 0
        for index in range(_VARINT_BYTES):
            if self.position == len(self.data):
                raise DecodeError("truncated", f"a varint is cut off{self._at()}")
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return value
        raise DecodeError("bad_length", f"a varint is longer than five bytes{self._at()}")

    def string(self) -> str:
        """Read a string that may not be null."""
        return self.text(self._present(self._string_length(), "a string"))

    def nullable_string(self) -> str | None:
        """Read a string, or None for null."""
        length = self._string_length()
        return None if length < 0 else self.text(length)

    def byte_string(self) -> bytes:
        """Read a byte string that may not be null."""
        return self.take(self._present(self._count(), "a byte string"))

    def nullable_byte_string(self) -> bytes | None:
        """Read a byte string, or None for null."""
        length = self._count()
        return None if length < 0 else self.take(length)

    def array_length(self, element_bytes: int) -> int:
        """Read the number of elements that follow, each of at least ``element_bytes`` bytes."""
        count = self._present(self._count(), "an array")
        if count * element_bytes > self.remaining():
            raise DecodeError(
                "bad_length", f"{count} elements claimed{self._at()}, {self.remaining()} bytes left"
            )
        return count

    def rows(self, layout: struct.Struct) -> Iterator[tuple[int, ...]]:
        """Read an array of fixed-width elements, whose fields are integers."""
        count = self.array_length(layout.size)
        return layout.iter_unpack(self.take(count * layout.size))

    def modified_utf(self) -> str:
        """Read a string from Java's ``DataOutputStream.writeUTF``.

        It encodes U+0000 as two bytes and characters beyond U+FFFF as two surrogates of three bytes
        each, neither of which is UTF-8.
        """
        raw = self.take(self.unpack(_UINT16)[0])
        if raw.isascii():
            return raw.decode("ascii")
        try:
            if max(raw) >= 0xF0:
                raise ValueError("a four-byte sequence")
            halves = raw.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
            return halves.encode("utf-16", "surrogatepass").decode("utf-16")
        except ValueError:
            raise DecodeError("bad_utf8", f"not Java's modified UTF-8{self._at()}") from None

    def tagged_fields(self) -> dict[int, bytes]:
        """Read a flexible message's tagged fields, by tag; a classic message has none."""
        if not self.flexible:
            return {}
        count = self.uvarint()
        if count * 2 > self.remaining():
            raise DecodeError("bad_length", f"{count} tagged fields claimed{self._at()}")
        return {self.uvarint(): self.take(self.uvarint()) for _ in range(count)}

    def take(self, length: int) -> bytes:
        """Read ``length`` bytes, a length that comes from the message."""
        start, end = self.position, self.position + length
        if end > len(self.data):
            raise DecodeError(
                "bad_length", f"{length} bytes claimed{self._at()}, {self.remaining()} left"
            )
        self.position = end
        return self.data[start:end]

    def text(self, length: int) -> str:
        """Read ``length`` bytes of UTF-8."""
        try:
            return self.take(length).decode()
        except UnicodeDecodeError:
            raise DecodeError("bad_utf8", f"a string is not UTF-8{self._at()}") from None

    def _string_length(self) -> int:
        return self.uvarint() - 1 if self.flexible else self.int16()

    def _count(self) -> int:
        return self.uvarint() - 1 if self.flexible else self.int32()

    def _present(self, length: int, what: str) -> int:
        if length < 0:
            raise DecodeError("bad_length", f"{what} may not be null{self._at()}")
        return length

    def _at(self) -> str:
        return f" at byte {self.position}"


_NEWEST = 0
_UUID = struct.Struct(">16s")
_NULL_ARRAY = b"\0"
_STRING_BYTES = 1  # a string's length alone
_ENTRY_BYTES = 3  # a key's length, a value's and the count of tagged fields

Element = TypeVar("Element")


class FlexibleReader(Reader):
    """A reader of flexible messages (KIP-482), with methods for their structures.

    Each method reads one field and raises DecodeError. Counts are checked against the remaining
    bytes before memory is allocated.
    """

    __slots__ = ()

    def __init__(self, data: bytes) -> None:
        super().__init__(data, flexible=True)

    def uuid(self) -> bytes:
        """Read a UUID: 16 bytes."""
        start = self.position
        self.unpack(_UUID)
        return self.data[start : self.position]

    def uuids(self) -> tuple[bytes, ...]:
        """Read an array of UUIDs."""
        raw = self.take(self.array_length(_UUID.size) * _UUID.size)
        return tuple(uuid for (uuid,) in _UUID.iter_unpack(raw))

    def strings(self) -> tuple[str, ...]:
        """Read an array of strings."""
        return tuple(self.string() for _ in range(self.array_length(_STRING_BYTES)))

    def int16s(self) -> tuple[int, ...]:
        """Read an array of signed 16-bit integers."""
        return tuple(number for (number,) in self.rows(_INT16))

    def int32s(self) -> tuple[int, ...]:
        """Read an array of signed 32-bit integers."""
        return tuple(number for (number,) in self.rows(_INT32))

    def array(
        self, element: Callable[[FlexibleReader], Element], element_bytes: int
    ) -> tuple[Element, ...]:
        """Read an array of structures, each of at least ``element_bytes`` bytes."""
        return tuple(element(self) for _ in range(self.array_length(element_bytes)))

    def nullable_array(
        self, element: Callable[[FlexibleReader], Element], element_bytes: int
    ) -> tuple[Element, ...]:
        """Read an array as in ``array``; empty for null."""
        return () if self._null_array() else self.array(element, element_bytes)

    def entries(self) -> dict[str, str]:
        """Read an array of structures of a key and a value; a key's last value counts."""
        entries = {}
        for _ in range(self.array_length(_ENTRY_BYTES)):
            key, value = self.string(), self.string()
            self.tagged_fields()
            entries[key] = value
        return entries

    def is_null(self) -> bool:
        """Read whether a nullable structure is null: a negative byte, or a 1 before its fields."""
        return self.int8() < 0

    def is_tagged_null(self) -> bool:
        """Read whether a nullable structure in a tagged field is null, an unsigned varint."""
        return self.uvarint() == 0

    def nullable_int32s(self) -> tuple[int, ...]:
        """Read an array of signed 32-bit integers; empty for null."""
        return () if self._null_array() else self.int32s()

    def nullable_entries(self) -> dict[str, str]:
        """Read an array as in ``entries``; empty for null."""
        return {} if self._null_array() else self.entries()

    def _null_array(self) -> bool:
        if self.data[self.position : self.position + 1] != _NULL_ARRAY:
            return False
        self.position += len(_NULL_ARRAY)
        return True


def tagged_field(
    fields: dict[int, bytes], tag: int, read: Callable[[FlexibleReader], Element]
) -> Element | None:
    """Read one of a structure's tagged fields; None if it is absent.

    Kafka omits a field with its default, which is empty for one whose schema says null: for such a
    field null, empty and absent all mean that it wasn't set.

    Raises DecodeError, ``trailing`` if the field is longer than what is read of it.
    """
    raw = fields.get(tag)
    if raw is None:
        return None
    reader = FlexibleReader(raw)
    value = read(reader)
    reader.expect_end()
    return value


def open_value(data: bytes, what: str) -> FlexibleReader:
    """Return a reader of a record's value of version 0, the only version so far.

    Raises DecodeError: ``unknown_version`` for another one, whose message names ``what``.
    """
    reader = FlexibleReader(data)
    version = reader.int16()
    if version != _NEWEST:
        raise DecodeError("unknown_version", f"{what} version {version}")
    return reader
