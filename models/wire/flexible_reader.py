"""Reads the values of the newer protocols' records, all of which are flexible."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

from caughtup.models.errors import DecodeError
from caughtup.models.wire.reader import Reader

_NEWEST = 0
_UUID = struct.Struct(">16s")
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
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
        return bytes(self.unpack(_UUID)[0])

    def uuids(self) -> tuple[bytes, ...]:
        """Read an array of UUIDs."""
        return tuple(uuid for (uuid,) in self.rows(_UUID))

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
