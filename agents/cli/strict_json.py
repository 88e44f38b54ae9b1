"""Decode JSON strictly: without duplicate keys, NaN, or unpaired surrogates."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from caughtup.models.errors import CaughtupError

#: An escaped surrogate, which may be unpaired; most lines have none.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


class Decoded(NamedTuple):
    """A decoded line. With a fault, only the scenario's name in the value is used."""

    value: object
    fault: CaughtupError | None


class _Object(list[tuple[str, object]]):
    """The pairs of a JSON object as they were written."""


class _Odd(NamedTuple):
    """A number that is refused, and the reason."""

    reason: str


def decode(line: bytes) -> Decoded:
    """Return a decoded line of UTF-8, with its first fault if it has one.

    Faults have the code ``bad_json``, or ``duplicate`` for a key given twice in one object, which
    is valid JSON but ambiguous.
    """
    suspicions: list[str] = []

    def to_dict(pairs: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(pairs)
        if len(made) < len(pairs):
            suspicions.append("a key that occurs twice")
        return made

    try:
        value = json.loads(
            line.decode(), object_pairs_hook=to_dict, parse_constant=suspicions.append
        )
    except RecursionError:
        return Decoded(None, nested_too_deeply())
    except ValueError:
        return _look_closely(line)
    if suspicions or _HALF.search(line):
        return Decoded(value, _look_closely(line).fault)
    return Decoded(value, None)


def nested_too_deeply() -> CaughtupError:
    """Return the error of a line with some hundreds of nested arrays."""
    return CaughtupError("bad_json", "the line is nested too deeply")


def _look_closely(line: bytes) -> Decoded:
    """Decode again, slowly, to locate the fault."""
    text = line.decode(errors="surrogateescape")
    try:
        value = json.loads(
            text, object_pairs_hook=_Object, parse_constant=_constant, parse_int=_integer
        )
        fault = _search(value, "")
    except json.JSONDecodeError as problem:
        reason = f"JSON: {problem.msg.removesuffix(' at')} at character {problem.pos + 1:,}"
        if not _is_whole(text):
            reason = "UTF-8"
        return Decoded(None, CaughtupError("bad_json", f"the line is not {reason}"))
    except RecursionError:
        return Decoded(None, nested_too_deeply())
    return Decoded(dict(value) if isinstance(value, _Object) else value, fault)


def _constant(text: str) -> _Odd:
    return _Odd(f"{text} is not a number in JSON")


def _integer(digits: str) -> int | _Odd:
    try:
        return int(digits)
    except ValueError:
        # Python converts at most 4,300 digits.
        return _Odd(f"a number of {len(digits):,} digits is too long")


def _search(value: object, place: str) -> CaughtupError | None:
    """Return the first fault in a value, in the order of the line."""
    if isinstance(value, _Object):
        return _search_object(value, place)
    if isinstance(value, list):
        inner = (_search(one, place) for one in value)
        return next((fault for fault in inner if fault), None)
    if isinstance(value, _Odd):
        return CaughtupError("bad_json", f"{place or 'the line'}: {value.reason}")
    if isinstance(value, str) and not _is_whole(value):
        return CaughtupError("bad_json", f"{place or 'the line'}: has half a character (UTF-8)")
    return None


def _search_object(pairs: _Object, place: str) -> CaughtupError | None:
    seen = set()
    for key, value in pairs:
        shown = key.encode(errors="backslashreplace").decode()[:80]
        inner = f"{place}.{shown}" if place else shown
        if not _is_whole(key):
            return CaughtupError("bad_json", f"{inner}: has half a character (UTF-8)")
        if key in seen:
            return CaughtupError("duplicate", f"{inner}: is given twice")
        seen.add(key)
        if fault := _search(value, inner):
            return fault
    return None


def _is_whole(text: str) -> bool:
    """Return whether text can be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
