"""Read the fields of decoded JSON; errors name the field by its path."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from caughtup.models.errors import CaughtupError, ScenarioError

T = TypeVar("T")


def mapping(value: object, place: str) -> Mapping[str, object]:
    """Return ``value`` if it is a JSON object. Raises ScenarioError ``bad_field``."""
    if not isinstance(value, Mapping):
        raise ScenarioError("bad_field", f"{place}: is not an object")
    return value


def array(value: object, place: str) -> Sequence[object]:
    """Return ``value`` if it is a JSON array. Raises ScenarioError ``bad_field``."""
    if not isinstance(value, list | tuple):
        raise ScenarioError("bad_field", f"{place}: is not an array")
    return value


def integer(value: object, place: str, least: int, greatest: int) -> int:
    """Return ``value`` if it is an integer within the bounds.

    Raises ScenarioError ``bad_field``.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise ScenarioError("bad_field", f"{place}: is not an integer")
    if not least <= value <= greatest:
        raise ScenarioError(
            "bad_field", f"{place}: {reprlib.repr(value)} is not from {least} to {greatest}"
        )
    return value


def required(owner: Mapping[str, object], field: str, place: str) -> object:
    """Return a field of an object. Raises ScenarioError ``missing_field``."""
    if field not in owner:
        raise ScenarioError("missing_field", f"{_join(place, field)}: is missing")
    return owner[field]


def required_mapping(owner: Mapping[str, object], field: str, place: str) -> Mapping[str, object]:
    """Return a field that must be an object. Raises ScenarioError."""
    return mapping(required(owner, field, place), _join(place, field))


def string(value: object, place: str) -> str:
    """Return ``value`` if it is a string. Raises ScenarioError ``bad_field``."""
    if not isinstance(value, str):
        raise ScenarioError("bad_field", f"{place}: is not a string")
    return value


def optional_string(value: object, place: str) -> str | None:
    """Return ``value`` if it is a string or None. Raises ScenarioError ``bad_field``."""
    return None if value is None else string(value, place)


def required_string(owner: Mapping[str, object], field: str, place: str) -> str:
    """Return a field that must be a string. Raises ScenarioError."""
    return string(required(owner, field, place), _join(place, field))


def parse(parser: Callable[[str], T], text: object, place: str) -> T:
    """Return a parsed id. Raises ScenarioError ``bad_field`` with the parser's message."""
    if not isinstance(text, str):
        raise ScenarioError("bad_field", f"{place}: {text!r:.80} is not a string")
    try:
        return parser(text)
    except CaughtupError as problem:
        raise ScenarioError("bad_field", f"{place}: {problem.message:.200}") from problem


def _join(place: str, field: str) -> str:
    return f"{place}.{field}" if place else field
