"""Describe what is wrong with settings: what each has to be, and which one may be meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from caughtup.agents.application_settings import ApplicationConfig
from caughtup.agents.settings import Settings
from caughtup.models.security.kafka_names import LIBRDKAFKA

#: What a setting has to be, by pydantic's type of error. Pydantic's own messages are about Python's
#: types.
_HAS_TO_BE = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a table",
    "finite_number": "a number that is finite",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller whole number",
    "int_type": "a whole number",
    "literal_error": "{expected}",
    "greater_than": "greater than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
    "model_type": "a table",
    "path_type": "a path",
    "string_too_long": "at most {max_length} characters long",
    "string_too_short": "at least {min_length} character long",
    "string_type": "text",
    "too_long": "a list of at most {max_length}",
    "tuple_type": "a list",
}
_VALIDATOR = "value_error"


def problems(error: ValidationError, origins: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each wrong setting, without its value, which may be a secret.

    ``origins``: where each setting was given.
    """
    reported: set[str] = set()
    for found in error.errors(include_url=False, include_input=False):
        name = _name(found["loc"])
        if name not in reported:
            reported.add(name)
            yield _problem(name, found["loc"], found["type"], found, origins)


def unknown(name: str, names: Iterable[str], otherwise: str = "", where: str = "") -> str:
    """Return a line: there is no such setting, and which one may be meant."""
    meant = get_close_matches(name, list(names), 1, 0.75)
    otherwise = otherwise or "see docs/reference/settings.md for the list"
    return f"unknown setting {name}{where}; {f'did you mean {meant[0]}?' if meant else otherwise}"


def _problem(
    name: str,
    place: tuple[int | str, ...],
    kind: str,
    found: ErrorDetails,
    origins: Mapping[str, str],
) -> str:
    if kind == "extra_forbidden":
        return _unknown(place, origins)
    context = found.get("ctx", {})
    if kind == _VALIDATOR:
        wrong = str(context["error"])
    elif place[0] == "kafka" and len(place) > 1:
        wrong = "it has to be text, a whole number, true or false"
    elif kind in _HAS_TO_BE:
        wrong = f"it has to be {_HAS_TO_BE[kind].format_map(context)}".replace("'", "")
    else:
        wrong = "the value is not valid"
    return f"setting {name}: {wrong}{given_in(name, origins)}" if name else wrong


def given_in(name: str, origins: Mapping[str, str]) -> str:
    """Return where a setting was given, in parentheses; empty if unknown."""
    while name and name not in origins:
        name = name.rpartition(".")[0]
    return f" ({origins[name]})" if name else ""


def _name(place: tuple[int | str, ...]) -> str:
    """Return a setting's name without pydantic's additions for unions and lists."""
    if place and place[0] == "kafka":
        place = place[:2]
    return ".".join(str(part) for part in place if isinstance(part, str) and part != "[key]")


def _unknown(place: tuple[int | str, ...], origins: Mapping[str, str]) -> str:
    *parents, name = map(str, place)
    prefix = "".join(f"{parent}." for parent in parents)
    model: type[BaseModel] = ApplicationConfig if parents else Settings
    names = [f"{prefix}{field.alias or key}" for key, field in model.model_fields.items()]
    misplaced = not parents and any(f"{known}.".startswith(f"{name}.") for known in LIBRDKAFKA)
    otherwise = "Kafka's properties belong under [kafka]" if misplaced else ""
    full = f"{prefix}{name}"
    return unknown(full, names, otherwise, given_in(full, origins))
