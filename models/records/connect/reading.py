"""The decoding that the three topics share."""

from __future__ import annotations

from typing import Any

import msgspec  # noqa: TID251 - allowed here

from caughtup.models.ids import NUMBER_MAX, ConnectorTaskId
from caughtup.models.records.decoding import (
    BAD_JSON,
    BAD_KEY,
    BAD_TYPE,
    TOO_LARGE,
    RefusedError,
    require_bounded,
)

#: The greatest size of a value: configurations of connectors contain schemas and certificates.
MOST_BYTES = 1 << 20
MOST_KEY_BYTES = 64 << 10
#: The most characters that are kept of a text in a configuration or a status.
CHARACTERS = 1_000
#: The most tasks of one connector.
MOST_TASKS = 100_000

#: A connector or one of its tasks.
Subject = str | ConnectorTaskId


def key_text(key: bytes | None) -> str:
    """Return a key as text. Raises RefusedError."""
    if key is None:
        raise RefusedError(BAD_KEY, "a record without a key")
    if len(key) > MOST_KEY_BYTES:
        raise RefusedError(TOO_LARGE, f"a key of {len(key):,} bytes")
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise RefusedError(BAD_KEY, "a key that isn't UTF-8") from None


def task_named(name: str) -> ConnectorTaskId:
    """Return the task of a name such as ``orders-sink-0``. Raises RefusedError."""
    connector, dash, number = name.rpartition("-")
    if not dash or not number.isascii() or not number.isdecimal() or len(number) > 9:
        raise RefusedError(BAD_KEY, "no task's name")
    task = int(number)
    if task > NUMBER_MAX:
        raise RefusedError(BAD_KEY, "no task's number")
    return ConnectorTaskId(connector, task)


def decoded(decoder: msgspec.json.Decoder[Any], value: bytes) -> Any:
    """Return a decoded value.

    Raises RefusedError, whose message quotes nothing of the value, as it may contain a password.
    """
    require_bounded(value, MOST_BYTES)
    try:
        return decoder.decode(value)
    except msgspec.ValidationError:
        raise RefusedError(BAD_TYPE, "fields of other types than Connect writes") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise RefusedError(BAD_JSON, "no JSON") from None
