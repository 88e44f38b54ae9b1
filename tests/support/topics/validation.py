"""Validates records and keys by the files in docs/topics/; unknown fields are errors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from tests.support.topics.catalogue import TOPICS, Kind, Topic
from tests.support.topics.schemas import Schema, file_of, key_schema

#: Validates as the readers do: 5.0 is no integer to them, though JSON Schema accepts it.
Validator = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: type(value) is int
    ),
)

_BY_NAME = {topic.name: topic for topic in TOPICS}


def problems(topic: str, key: bytes | None, value: bytes | None) -> list[str]:
    """Return what is wrong with a record of a topic, named without its prefix; empty if nothing is.

    A field that the topic's schema lacks is wrong, since it is undocumented.
    """
    decoded = None if value is None else json.loads(value)
    kind = _kind_of(topic, key, decoded)
    if kind is None:
        return [f"{topic}: no key is like {key!r}"]
    if value is None:
        return [] if _BY_NAME[topic].tombstones else [f"{topic}: a tombstone of {key!r}"]
    errors = _validator(topic, kind.struct.__name__).iter_errors(decoded)
    return [f"{topic} {key!r}: {error.json_path}: {error.message}" for error in errors]


def kinds_of(topic: str, keys: Iterable[bytes | None], value: object = None) -> set[str]:
    """Return the structs' names of records with these keys, and this value if keys aren't enough."""
    found = (_kind_of(topic, key, value) for key in keys)
    return {kind.struct.__name__ for kind in found if kind is not None}


def _kind_of(topic: str, key: bytes | None, value: object = None) -> Kind | None:
    """Return the kind of records with these keys, the last match first: it is the narrowest.

    Of kinds with the same keys it is the one whose schema the value fits.
    """
    for kind in reversed(_BY_NAME[topic].kinds):
        for form in kind.keys:
            try:
                found = (key or b"").decode() if form.is_text else json.loads(key or b"")
            except ValueError:
                continue
            if Validator(key_schema(form)).is_valid(found):
                return _of_value(_BY_NAME[topic], kind, value)
    return None


def _of_value(topic: Topic, kind: Kind, value: object) -> Kind:
    for when, one in zip(topic.when, topic.kinds, strict=False):
        if one.keys == kind.keys and Validator(when).is_valid(value):
            return one
    return kind


@cache
def _validator(topic: str, struct: str) -> Any:
    schema: Schema = json.loads(file_of(_BY_NAME[topic]).read_text())
    parts: dict[str, Any] = {
        name: {**part, "additionalProperties": False} if "properties" in part else part
        for name, part in schema["$defs"].items()
    }
    return Validator({"$ref": f"#/$defs/{struct}", "$defs": parts})
