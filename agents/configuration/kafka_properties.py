"""The client properties under ``[kafka]``, from every place where they can be given.

Each place adds to the one before: the settings file, ``CAUGHTUP_KAFKA`` (JSON),
``CAUGHTUP_KAFKA_SASL_PASSWORD`` and so on for single properties, options.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from caughtup.agents.kafka.property_names import OTHER_PROPERTIES
from caughtup.models.security.kafka_names import SECRETS, is_secret

PREFIX = "CAUGHTUP_KAFKA_"
_FILE = "_file"
#: What is read of a secret's file: a key and its chain of certificates are some kilobytes.
_MOST_BYTES = 1 << 20


class SecretError(Exception):
    """A secret's file can't be used: what is the matter with it, in words."""


def properties_of(variables: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return what variables for single properties say, and their names.

    Dots are underscores there.
    """
    return {
        _property(name.removeprefix(PREFIX).lower()): (value, name)
        for name, value in variables.items()
        if name.startswith(PREFIX)
    }


def _property(words: str) -> str:
    if words in OTHER_PROPERTIES:  # such as log_level
        return words
    name = words.replace("_", ".")
    return f"{name.removesuffix('.file')}{_FILE}" if names_file(name) else name


def names_file(name: str) -> bool:
    """Return whether a property is the path of the file that holds a secret.

    Of ``sasl.password`` that is ``sasl.password_file``; ``sasl.password.file`` means the same.
    """
    return name.endswith((_FILE, ".file")) and is_secret(name[: -len(_FILE)])


def flattened(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a table's properties: TOML makes tables in tables of names without quotation marks."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flattened(value, f"{name}.")
        else:
            yield f"{name[: -len(_FILE)]}{_FILE}" if names_file(name) else name, value


def contradictions(place: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with properties that are given in one place."""
    for name in sorted(SECRETS & place.keys()):
        if f"{name}{_FILE}" in place:
            yield f"setting kafka.{name}: {name}{_FILE} is set as well; leave one of them out"


def merge(merged: dict[str, Any], place: Mapping[str, Any]) -> None:
    """Add a place's properties: of a secret and its file, the later place has the last word."""
    for name in place:
        secret = name.removesuffix(_FILE)
        if secret in SECRETS:
            merged.pop(secret, None)
            merged.pop(f"{secret}{_FILE}", None)
    merged.update(place)


def secret_files(merged: Mapping[str, Any]) -> dict[str, Path]:
    """Return the files that secrets are to be read from, by the secret's name."""
    return {
        name.removesuffix(_FILE): Path(str(path))
        for name, path in merged.items()
        if names_file(name)
    }


def read_secret(path: Path) -> str:
    """Return a secret without the line's end. Raises SecretError."""
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1).decode()
    except UnicodeDecodeError:
        raise SecretError("the file is not UTF-8 text") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise SecretError(getattr(error, "strerror", None) or "it is no path") from None
    if len(text) > _MOST_BYTES:
        raise SecretError("the file is too large for a secret")
    if not text.strip():
        raise SecretError("the file is empty")
    return text.strip("\r\n")


def unreadable_secrets(files: Mapping[str, Path], into: dict[str, Any]) -> Iterable[str]:
    """Read secrets into the properties, and yield what is wrong with each file that can't be."""
    for name, path in files.items():
        try:
            into[name] = read_secret(path)
        except SecretError as error:
            yield f"setting kafka.{name}{_FILE}: {path}: {error}"
