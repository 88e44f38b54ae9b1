"""Invalid records for the service's topics, and the reason why each is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest


def malformed(key: bytes, good: bytes) -> list[Any]:
    """Return invalid records: the reason, the key, and a value instead of a valid one."""
    fields: dict[str, Any] = json.loads(good)
    return [
        pytest.param("bad_json", key, b"", id="empty"),
        pytest.param("bad_json", key, b"\xff", id="not UTF-8"),
        pytest.param("bad_json", key, good[:-1], id="cut short"),
        pytest.param("bad_type", key, b"[]", id="an array"),
        pytest.param("bad_type", key, b"7", id="a number"),
        pytest.param("bad_type", key, b"null", id="null"),
        pytest.param("too_deep", key, b"[" * 10_000, id="nested deeply"),
        pytest.param("too_deep", key, b'{"later":' + b"[" * 10_000, id="nested deeply within"),
        pytest.param(
            "other_schema", key, json.dumps({**fields, "schema": 99}).encode(), id="another schema"
        ),
    ]


def badly_keyed(good: bytes) -> list[Any]:
    """Return keys that name no copy of a task, each with a valid value."""
    return [
        pytest.param("bad_key", None, good, id="no key"),
        pytest.param("bad_key", b"orders", good, id="a key that isn't JSON"),
        pytest.param("bad_key", b'["orders", "p"]', good, id="a key with too few parts"),
        pytest.param("bad_key", b'["orders", "p", "01"]', good, id="not a task"),
    ]
