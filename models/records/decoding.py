"""Encode and decode records: values are bounded before they are parsed, typed and versioned.

Any client with access may write anything to a topic, so everything is checked: the size and the
depth of a value, that it agrees with its key, and that its times aren't in the future.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Generic, TypeVar

import msgspec  # noqa: TID251 - allowed here

from caughtup.models.clocks import AHEAD_MS, is_from_the_future
from caughtup.models.errors import CaughtupError
from caughtup.models.records.fields import Record

#: The reasons to refuse a record, by which ``RefusedRecords`` counts.
TOO_LARGE = "too_large"
TOO_DEEP = "too_deep"
TOO_MANY = "too_many"
BAD_COMPRESSION = "bad_compression"
BAD_JSON = "bad_json"
BAD_TYPE = "bad_type"
BAD_KEY = "bad_key"
OTHER_SCHEMA = "other_schema"
FROM_THE_FUTURE = "from_the_future"

#: The deepest accepted nesting of arrays and objects. Our own records have seven levels.
MOST_DEEP = 32
#: The bytes that determine the depth once escapes are removed, and the step in depth of each.
_STRUCTURE = b'"[]{}'
_OTHERS = bytes(set(range(256)) - set(_STRUCTURE))
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")

R = TypeVar("R", bound=Record)


class RefusedError(CaughtupError):
    """A refused record; the code is the reason, the message is one line."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(reason, " ".join(message.split()))


class _Header(msgspec.Struct):
    """The field that all schemas have."""

    schema: int


_decode_header = msgspec.json.Decoder(_Header).decode
_encode = msgspec.json.encode


class RecordFormat(Generic[R]):
    """Encodes and decodes the values of one kind of record.

    ``schemas`` are those that can be decoded; the last is written. ``most_bytes`` is the greatest
    size of a value, uncompressed.
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
        """Return a record's value."""
        return _encode(record)

    def encode_fields(self, fields: Mapping[str, Any]) -> bytes:
        """Return a value from its fields by their names in JSON; raises KeyError for unknown ones."""
        return _encode(self.kind(**{self._names[name]: of for name, of in fields.items()}))

    def decode(self, value: bytes) -> R:
        """Return the record of a value. Raises RefusedError."""
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
        """Refuse a value with an unknown schema, which is the likely reason for other errors."""
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
    """Raise RefusedError for JSON that is too large or too deep to be parsed."""
    if len(text) > most_bytes:
        raise RefusedError(TOO_LARGE, f"{len(text):,} bytes, more than {most_bytes:,}")
    if is_too_deep(text):
        raise RefusedError(TOO_DEEP, f"nested deeper than {MOST_DEEP}")


def is_too_deep(text: bytes) -> bool:
    """Return whether JSON is nested deeper than ``MOST_DEEP``, without parsing it."""
    if text.count(b"[") + text.count(b"{") <= MOST_DEEP:
        return False
    bare = text.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, _OTHERS)
    # Two adjacent quotes don't change whether what follows is inside a string.
    brackets = b"".join(bare.replace(b'""', b"").split(b'"')[::2])
    steps = memoryview(brackets.translate(_STEPS)).cast("b")
    return max(accumulate(steps), default=0) > MOST_DEEP


def require_agreement(key: object, value: object) -> None:
    """Raise RefusedError if a record's value doesn't agree with its key."""
    if key != value:
        raise RefusedError(BAD_KEY, f"the key says {key!s:.80}, the value {value!s:.80}")


def require_past(at_ms: int | None, clock_ms: int) -> None:
    """Raise RefusedError for a time (ms) that is in the future by a clock (ms)."""
    if at_ms is not None and is_from_the_future(at_ms, clock_ms):
        ahead = (at_ms - clock_ms) / 1000
        raise RefusedError(
            FROM_THE_FUTURE, f"{ahead:,.0f} s in the future, more than {AHEAD_MS // 1000} s"
        )


def _short(number: int) -> str:
    return f"{number}" if abs(number) < 10**9 else "with more than nine digits"
