"""The client properties under ``[kafka]``, from every place where they can be given.

Each place adds to the one before: the settings file, ``CAUGHTUP_KAFKA`` (JSON),
``CAUGHTUP_KAFKA_SASL_PASSWORD`` and so on for single properties, options.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from caughtup.agents.errors import UserError

PREFIX = "CAUGHTUP_KAFKA_"

#: With ``.file`` behind its name, each is read from a file, as orchestrators hand out secrets.
_FROM_FILES = ("sasl.password", "ssl.key.password", "ssl.keystore.password")


def merged_properties(*places: Mapping[str, Any]) -> dict[str, Any]:
    """Merge property by property, the last place first. Raises UserError, naming the property."""
    merged: dict[str, Any] = {}
    for place in places:
        for name in _FROM_FILES:
            if name in place and f"{name}.file" in place:
                raise UserError(f"setting kafka.{name}: {name}.file is set as well; leave one out")
            if name in place or f"{name}.file" in place:
                merged.pop(name, None)
                merged.pop(f"{name}.file", None)
        merged.update(place)
    for name in _FROM_FILES:
        if (path := merged.pop(f"{name}.file", None)) is not None:
            merged[name] = _read(f"{name}.file", Path(str(path)))
    return merged


def properties_of(variables: Mapping[str, str]) -> dict[str, str]:
    """Return what variables for single properties say: dots are underscores there."""
    return {
        name.removeprefix(PREFIX).lower().replace("_", "."): value
        for name, value in variables.items()
        if name.startswith(PREFIX)
    }


def _read(name: str, path: Path) -> str:
    try:
        text = path.read_text().strip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not text in UTF-8"
        raise UserError(f"setting kafka.{name}: {path}: {reason}") from None
    if not text:
        raise UserError(f"setting kafka.{name}: {path}: the file is empty")
    return text
