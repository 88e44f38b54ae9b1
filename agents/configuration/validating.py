"""Validate settings, and describe all that is wrong: what each has to be, or which may be meant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from difflib import get_close_matches
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from caughtup.agents.declared_settings import Limits, Setting, settings_of
from caughtup.agents.settings import Settings
from caughtup.models.security.kafka_names import LIBRDKAFKA

#: What a setting of a type has to be.
_HAS_TO_BE: Mapping[object, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple: "a list",
    dict: "a table",
    Path: "a path",
}
#: What a variable may say for a boolean, in any case.
_BOOLEANS = {
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False),
}


#: The names of the tables that a value is in, and its own.
_Place = tuple[str, ...]


class _Wrong:
    """What is wrong so far, a line each, without the values, which may be secrets."""

    def __init__(self, origins: Mapping[str, str]) -> None:
        self.lines: dict[str, str] = {}
        self._origins = origins

    def add(self, place: _Place, text: str) -> None:
        """Add what is wrong with a setting, if nothing is known to be."""
        name = ".".join(place)
        self.lines.setdefault(name, f"setting {name}: {text}{given_in(name, self._origins)}")

    def add_unknown(self, place: _Place, names: Iterable[str]) -> None:
        """Add that there is no such setting, of these names that are in its table."""
        *parents, name = place
        prefix = "".join(f"{parent}." for parent in parents)
        misplaced = not parents and any(f"{known}.".startswith(f"{name}.") for known in LIBRDKAFKA)
        otherwise = "Kafka's properties belong under [kafka]" if misplaced else ""
        meant = [f"{prefix}{known}" for known in names]
        full = ".".join(place)
        self.lines.setdefault(full, unknown(full, meant, otherwise, given_in(full, self._origins)))


def validated(
    values: Mapping[str, object], origins: Mapping[str, str], secret_files: Mapping[str, Path]
) -> tuple[Settings, list[str]]:
    """Return the settings, and a line for each that is wrong, which then has its default.

    ``origins``: where each was given.
    """
    wrong = _Wrong(origins)
    settings = _table(Settings, values, (), wrong, secret_files=secret_files)
    return settings, [*wrong.lines.values()] or [*settings.contradictions()]


def unknown(name: str, names: Iterable[str], otherwise: str = "", where: str = "") -> str:
    """Return a line: there is no such setting, and which one may be meant."""
    meant = get_close_matches(name, list(names), 1, 0.75)
    otherwise = otherwise or "see docs/reference/settings.md for the list"
    return f"unknown setting {name}{where}; {f'did you mean {meant[0]}?' if meant else otherwise}"


def given_in(name: str, origins: Mapping[str, str]) -> str:
    """Return where a setting was given, in parentheses; empty if unknown."""
    while name and name not in origins:
        name = name.rpartition(".")[0]
    return f" ({origins[name]})" if name else ""


def _table(
    declaring: Any, values: Mapping[str, object], place: _Place, wrong: _Wrong, **others: object
) -> Any:
    """Return a dataclass of the values that are right; ``others`` are fields, but no settings."""
    known = {one.name: (key, one) for key, one in settings_of(declaring).items()}
    found = dict(others)
    for name, value in values.items():
        at = (*place, str(name))
        if name not in known:
            wrong.add_unknown(at, known)
            continue
        key, declared = known[name]
        try:
            found[key] = _value(declared, value, at, wrong)
        except ValueError as error:
            wrong.add(at, str(error))
    return declaring(**found)


def _value(setting: Setting, given: object, place: _Place, wrong: _Wrong) -> object:
    """Return a setting's value. Raises ValueError with what it has to be."""
    declared = setting.declared
    if declared.read is not None:
        given = declared.read(given)
    kind = _without_none(setting.type)
    if given is None and kind is not setting.type:
        return None
    if get_origin(kind) is dict:
        if not isinstance(given, Mapping):
            raise ValueError(f"it has to be {_HAS_TO_BE[dict]}")
        return _entries(kind, given, place, wrong)
    value = _converted(kind, given)
    if (limit := _beyond(declared.limits, value)) is not None:
        raise ValueError(f"it has to be {limit}")
    if declared.check is not None:
        declared.check(value)
    return value


def _entries(
    kind: Any, given: Mapping[object, object], place: _Place, wrong: _Wrong
) -> dict[Any, Any]:
    """Return a table's entries that are right."""
    key_type, value_type = get_args(kind)
    found = {}
    for name, value in given.items():
        at = (*place, str(name))
        try:
            key = _converted(key_type, name)
            if not is_dataclass(value_type):
                found[key] = _converted(value_type, value)
            elif isinstance(value, Mapping):
                found[key] = _table(value_type, value, at, wrong)
            else:
                raise ValueError(f"it has to be {_HAS_TO_BE[dict]}")
        except ValueError as error:
            wrong.add(at, str(error))
    return found


def _converted(kind: Any, given: object) -> Any:
    """Return a value as one of a type, from text, too. Raises ValueError with what it has to be."""
    if kind is bool and isinstance(given, str):
        given = _BOOLEANS.get(given.lower(), given)
    elif kind in (int, float) and isinstance(given, str):
        given = given.strip()
    try:
        # A union is of a Kafka property's types, of which text is text.
        strict = _is_union(kind) and isinstance(given, str)
        value = msgspec.convert(given, kind, strict=strict, dec_hook=_path)
    except (msgspec.ValidationError, ValueError, OverflowError):
        raise ValueError(f"it has to be {_described(kind, given)}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("it has to be a number that is finite")
    return value


def _path(kind: object, given: object) -> Path:
    if kind is not Path or not isinstance(given, str | Path):
        raise TypeError("not a path")  # msgspec makes a ValidationError of it
    return Path(given)


def _described(kind: Any, given: object) -> str:
    """Return what a value of this type has to be; of a list that has another one, what is in it."""
    origin = get_origin(kind) or kind
    if origin is Literal:
        return _any_of(get_args(kind))
    if _is_union(kind):
        return ", ".join(_HAS_TO_BE[one] for one in get_args(kind))
    if origin is tuple and isinstance(given, list | tuple):
        return _described(get_args(kind)[0], None)
    return _HAS_TO_BE[origin]


def _beyond(limits: Limits, value: Any) -> str | None:
    """Return the limit that a value is beyond, None if it is within all."""
    if limits.gt is not None and not value > limits.gt:
        return f"greater than {limits.gt}"
    if limits.ge is not None and not value >= limits.ge:
        return f"at least {limits.ge}"
    if limits.le is not None and not value <= limits.le:
        return f"at most {limits.le}"
    if limits.min_length is not None and len(value) < limits.min_length:
        return f"at least {limits.min_length} character long"
    if limits.max_length is not None and len(value) > limits.max_length:
        if isinstance(value, str):
            return f"at most {limits.max_length} characters long"
        return f"a list of at most {limits.max_length}"
    return None


def _without_none(kind: Any) -> Any:
    """Return the type of a setting that may be unset, or the type itself."""
    types = [one for one in get_args(kind) if one is not NoneType] if _is_union(kind) else [kind]
    return types[0] if len(types) == 1 else kind


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, UnionType)


def _any_of(words: Sequence[str]) -> str:
    """Return the words with commas and, before the last, ``or``."""
    *others, last = words
    return f"{', '.join(others)} or {last}" if others else last
