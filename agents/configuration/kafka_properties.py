"""The client properties under ``[kafka]``, merged from every place where they can be given.

Later places override earlier ones: the settings file, ``CAUGHTUP_KAFKA`` (JSON), variables for
single properties such as ``CAUGHTUP_KAFKA_SASL_PASSWORD``, options.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from caughtup.agents.kafka.property_problems import OTHER_PROPERTIES
from caughtup.models.security.kafka_names import SECRETS, is_secret

PREFIX = "CAUGHTUP_KAFKA_"
_FILE = "_file"
#: The largest file of a secret: a key with its certificate chain has some kilobytes.
_MOST_BYTES = 1 << 20


class SecretError(Exception):
    """The file of a secret cannot be used; the message says why."""


def properties_of(variables: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the values and variable names of variables for single properties, by property.

    Variables have underscores in place of dots.
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
    """Return whether a property is the path of a file that holds a secret.

    For ``sasl.password`` that is ``sasl.password_file``, or ``sasl.password.file``.
    """
    return name.endswith((_FILE, ".file")) and is_secret(name[: -len(_FILE)])


def flattened(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield a table's properties: in TOML, unquoted names with dots make nested tables."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flattened(value, f"{name}.")
        else:
            yield f"{name[: -len(_FILE)]}{_FILE}" if names_file(name) else name, value


def contradictions(place: Mapping[str, object]) -> Iterator[str]:
    """Yield a line for each secret that one place gives both as a value and as a file."""
    for name in sorted(SECRETS & place.keys()):
        if f"{name}{_FILE}" in place:
            yield f"setting kafka.{name}: {name}{_FILE} is set as well; leave one of them out"


def merge(merged: dict[str, object], place: Mapping[str, object]) -> None:
    """Add a place's properties; a secret replaces its file of an earlier place, and vice versa."""
    for name in place:
        secret = name.removesuffix(_FILE)
        if secret in SECRETS:
            merged.pop(secret, None)
            merged.pop(f"{secret}{_FILE}", None)
    merged.update(place)


def secret_files(merged: Mapping[str, object]) -> dict[str, Path]:
    """Return the files to read secrets from, by the secret's property."""
    return {
        name.removesuffix(_FILE): Path(str(path))
        for name, path in merged.items()
        if names_file(name)
    }


def read_secret(path: Path) -> str:
    """Return the secret in a file, without line ends around it. Raises SecretError."""
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_BYTES + 1).decode()
    except UnicodeDecodeError:
        raise SecretError("the file is not UTF-8 text") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise SecretError(getattr(error, "strerror", None) or "it is not a path") from None
    if len(text) > _MOST_BYTES:
        raise SecretError("the file is too large for a secret")
    if not text.strip():
        raise SecretError("the file is empty")
    return text.strip("\r\n")


def unreadable_secrets(files: Mapping[str, Path], into: dict[str, object]) -> Iterable[str]:
    """Read secrets into the properties; yield a line for each file that cannot be used."""
    for name, path in files.items():
        try:
            into[name] = read_secret(path)
        except SecretError as error:
            yield f"setting kafka.{name}{_FILE}: {path}: {error}"
