"""Decode a record by the rules of all of them: bounded before it is parsed, typed, versioned.

Whoever may write to a topic may write anything, so nothing is taken on trust: neither how large
or how deep a value is, nor that its key says what it says, nor that its times have come.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Generic, TypeVar

import msgspec  # noqa: TID251 - allowed here

from caughtup.models.clocks import AHEAD_MS, is_from_the_future
from caughtup.models.errors import CaughtupError
from caughtup.models.records.fields import Record

#: Why a record is refused, as ``RefusedRecords`` counts it.
TOO_LARGE = "too_large"
TOO_DEEP = "too_deep"
TOO_MANY = "too_many"
BAD_COMPRESSION = "bad_compression"
BAD_JSON = "bad_json"
BAD_TYPE = "bad_type"
BAD_KEY = "bad_key"
OTHER_SCHEMA = "other_schema"
FROM_THE_FUTURE = "from_the_future"

#: Arrays and objects in one another that are let through. Ours go seven deep.
MOST_DEEP = 32
#: What says how deep a value is, once escapes are left out; what of it opens, and what closes.
_STRUCTURE = b'"[]{}'
_OTHERS = bytes(set(range(256)) - set(_STRUCTURE))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")

R = TypeVar("R", bound=Record)


class RefusedError(CaughtupError):
    """A record that isn't taken. The code is the reason, the message is one line."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(reason, " ".join(message.split()))


class _Header(msgspec.Struct):
    """What tells which release wrote a record."""

    schema: int


_decode_header = msgspec.json.Decoder(_Header).decode
_encode = msgspec.json.encode


class RecordFormat(Generic[R]):
    """How values of one kind of record are written and read.

    ``schemas``: those that are read, of which the last is written. ``most_bytes``: how large a
    value may be, uncompressed.
    """

    def __init__(self, kind: type[R], schemas: tuple[int, ...], most_bytes: int) -> None:
        self.kind = kind
        self.schemas = schemas
        self.most_bytes = most_bytes
        self._decode = msgspec.json.Decoder(kind).decode
        self._names = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))

    @property
    def schema(self) -> int:
        """The schema that is written."""
        return self.schemas[-1]

    def encode(self, record: R) -> bytes:
        """Write a value."""
        return _encode(record)

    def encode_fields(self, fields: Mapping[str, Any]) -> bytes:
        """Write a value by its fields' names in JSON. Raises KeyError for one that there isn't."""
        return _encode(self.kind(**{self._names[name]: of for name, of in fields.items()}))

    def decode(self, value: bytes) -> R:
        """Read a value. Raises RefusedError."""
        require_bounded(value, self.most_bytes)
        try:
            record = self._decode(value)
        except msgspec.ValidationError as error:
            self._require_schema(value)
            raise RefusedError(BAD_TYPE, str(error)) from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RefusedError(BAD_JSON, str(error)) from None
        if record.schema not in self.schemas:
            raise self._other_schema(record.schema)
        return record

    def _require_schema(self, value: bytes) -> None:
        """Refuse a value for its schema, if that is another one: nothing else of it is known."""
        try:
            schema = _decode_header(value).schema
        except (msgspec.DecodeError, UnicodeDecodeError):
            return
        if schema not in self.schemas:
            raise self._other_schema(schema)

    def _other_schema(self, schema: int) -> RefusedError:
        known = " or ".join(map(str, self.schemas))
        return RefusedError(OTHER_SCHEMA, f"schema {_short(schema)}, not {known}")


def require_bounded(text: bytes, most_bytes: int) -> None:
    """Refuse JSON that is too large or too deep to be parsed. Raises RefusedError."""
    if len(text) > most_bytes:
        raise RefusedError(TOO_LARGE, f"{len(text):,} bytes, more than {most_bytes:,}")
    if is_too_deep(text):
        raise RefusedError(TOO_DEEP, f"nested deeper than {MOST_DEEP}")


def is_too_deep(text: bytes) -> bool:
    """Return whether JSON is nested deeper than ``MOST_DEEP``, without parsing it."""
    if text.count(b"[") + text.count(b"{") <= MOST_DEEP:
        return False
    bare = text.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, _OTHERS)
    # Two quotes side by side leave what is around them in a string, or out of one.
    brackets = b"".join(bare.replace(b'""', b"").split(b'"')[::2])
    steps = memoryview(brackets.translate(_STEPS)).cast("b")
    return max(accumulate(steps), default=0) > MOST_DEEP


def require_agreement(key: object, value: object) -> None:
    """Refuse a record whose value is of something else than its key says. Raises RefusedError."""
    if key != value:
        raise RefusedError(BAD_KEY, f"the key says {key!s:.80}, the value {value!s:.80}")


def require_past(at_ms: int | None, clock_ms: int) -> None:
    """Refuse a time (ms) that is yet to come, by a clock (ms). Raises RefusedError."""
    if at_ms is not None and is_from_the_future(at_ms, clock_ms):
        ahead = (at_ms - clock_ms) / 1000
        raise RefusedError(
            FROM_THE_FUTURE, f"{ahead:,.0f} s from now, more than {AHEAD_MS // 1000} s"
        )


def _short(number: int) -> str:
    return f"{number}" if abs(number) < 10**9 else "beyond any number"
