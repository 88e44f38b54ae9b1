"""What the records of all three topics have in common: bounded keys, tasks' names, JSON values."""

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

#: Values may be no larger: connectors bring schemas and certificates in their configurations.
MOST_BYTES = 1 << 20
MOST_KEY_BYTES = 64 << 10
#: Characters that are kept of what a configuration or a status says.
CHARACTERS = 1_000
#: Tasks of one connector: nobody has as many.
MOST_TASKS = 100_000

#: A connector or one of its tasks.
Subject = str | ConnectorTaskId


def key_text(key: bytes | None) -> str:
    """Read a key. Raises RefusedError."""
    if key is None:
        raise RefusedError(BAD_KEY, "a record without a key")
    if len(key) > MOST_KEY_BYTES:
        raise RefusedError(TOO_LARGE, f"a key of {len(key):,} bytes")
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise RefusedError(BAD_KEY, "a key that isn't UTF-8") from None


def task_named(name: str) -> ConnectorTaskId:
    """Read ``orders-sink-0``, whatever characters the connector's name has.

    Raises RefusedError.
    """
    connector, dash, number = name.rpartition("-")
    if not dash or not number.isascii() or not number.isdecimal() or len(number) > 9:
        raise RefusedError(BAD_KEY, "no task's name")
    task = int(number)
    if task > NUMBER_MAX:
        raise RefusedError(BAD_KEY, "no task's number")
    return ConnectorTaskId(connector, task)


def decoded(decoder: msgspec.json.Decoder[Any], value: bytes) -> Any:
    """Decode a value.

    Raises RefusedError, which tells nothing of the value: a password may be in it.
    """
    require_bounded(value, MOST_BYTES)
    try:
        return decoder.decode(value)
    except msgspec.ValidationError:
        raise RefusedError(BAD_TYPE, "fields of other types than Connect writes") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise RefusedError(BAD_JSON, "no JSON") from None
