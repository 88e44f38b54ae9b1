"""Load the settings: options override ``CAUGHTUP_*`` variables, these override the file.

Everything is validated before any socket is opened, and all problems are reported together.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from caughtup.agents.configuration import kafka_properties
from caughtup.agents.configuration.validating import unknown, validated
from caughtup.agents.declared_settings import settings_of
from caughtup.agents.errors import UserError
from caughtup.agents.kafka.property_problems import property_problems
from caughtup.agents.settings import Settings
from caughtup.models.security.kafka import KafkaClient

log = logging.getLogger(__name__)

PREFIX = "CAUGHTUP_"
#: Variables with our prefix that are not settings; they are read elsewhere.
OTHER_VARIABLES = frozenset({"CAUGHTUP_CONFIG", "CAUGHTUP_CACHE", "CAUGHTUP_HISTORY"})
#: Variables that Kubernetes injects for Services named caughtup, caughtup-kafka and caughtup-…
_KUBERNETES = re.compile(
    r"CAUGHTUP_(\w+_)?(SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_\w+)|CAUGHTUP_(KAFKA_)?PORT"
)
#: Such a variable may have a setting's name: for a Service caughtup-web, CAUGHTUP_WEB_PORT.
_KUBERNETES_PORT = re.compile(r"CAUGHTUP_\w+_PORT")
_KUBERNETES_ADDRESS = re.compile(r"(tcp|udp|sctp)://\S+:\d+")
_NAMES = settings_of(Settings).keys()
#: Settings that are tables, which are merged key by key.
_TABLES = ("kafka", "applications")
#: A table in an application's settings that is not merged, but one value.
_CHANGELOGS = "changelogs"


class Loaded(NamedTuple):
    """Settings, and where each was given, by name; defaults are left out of ``origins``."""

    settings: Settings
    origins: Mapping[str, str]


@dataclass
class _Merged:
    """The values of all places so far, where each came from, and what is wrong with them."""

    values: dict[str, object] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def add(self, place: Mapping[str, object], origin: str) -> None:
        """Add a place's values. A wrong type in place of a table is left to validation."""
        for name, value in place.items():
            if name in _TABLES and isinstance(value, Mapping):
                self._add_table(name, value, origin)
            else:
                self.values[name] = value
                self.origins[name] = origin

    def _add_table(self, table: str, added: Mapping[str, object], origin: str) -> None:
        merged = self.values.setdefault(table, {})
        if not isinstance(merged, dict):
            return
        if table == "kafka":
            properties = dict(kafka_properties.flattened(added))
            self.wrong += kafka_properties.contradictions(properties)
            kafka_properties.merge(merged, properties)
            self.origins.update((f"kafka.{name}", origin) for name in properties)
            return
        for name, application in added.items():
            self.origins[f"{table}.{name}"] = origin
            if not isinstance(application, Mapping):
                merged[name] = application
                continue
            known = merged.setdefault(name, {})
            if isinstance(known, dict):
                rest = {key: value for key, value in application.items() if key != _CHANGELOGS}
                known.update(kafka_properties.flattened(rest))
                if _CHANGELOGS in application:
                    known[_CHANGELOGS] = application[_CHANGELOGS]


def load_settings(config: Path | None = None, **overrides: object) -> Settings:
    """Read the settings. Raises UserError; see ``read_settings``."""
    return read_settings(config, clients=(), **overrides).settings


def read_settings(
    config: Path | None = None, *, clients: Iterable[KafkaClient] = (), **overrides: object
) -> Loaded:
    """Read the settings, and where each was given.

    ``config`` is the file; without it ``$CAUGHTUP_CONFIG``, then ``./caughtup.toml`` if it exists.
    Kafka properties that one of ``clients`` cannot use are errors. Raises UserError, naming every
    setting that is unknown or wrong, without its value, which may be a secret.
    """
    merged = _Merged()
    path = _path_of(config)
    if path is not None:
        merged.add(_parsed(path), str(path))
    _add_variables(merged)
    for name, value in overrides.items():
        if value is not None:
            merged.add({name: value}, f"--{name.replace('_', '-')}")
    kafka = merged.values.get("kafka", {})
    files: Mapping[str, Path] = {}
    if isinstance(kafka, dict):
        files = kafka_properties.secret_files(kafka)
        for name in files:
            del kafka[f"{name}_file"]
        merged.wrong += kafka_properties.unreadable_secrets(files, kafka)
        plain = {name: value for name, value in kafka.items() if isinstance(value, str | int)}
        merged.wrong += property_problems(plain, clients, files.keys() - kafka.keys())
    settings, wrong = validated(merged.values, merged.origins, files)
    merged.wrong += wrong
    if merged.wrong:
        raise UserError(*dict.fromkeys(merged.wrong))
    return Loaded(settings, merged.origins)


def _add_variables(merged: _Merged) -> None:
    """Add the environment's variables: plain settings and tables, then single properties."""
    properties = {}
    for name, value in sorted(os.environ.items()):
        if not name.startswith(PREFIX) or name in OTHER_VARIABLES:
            continue
        key = name.removeprefix(PREFIX).lower()
        if _is_kubernetes(name, value):
            if key in _NAMES:
                log.warning("%s is the address of a Kubernetes Service: ignored", name)
        elif name.startswith(kafka_properties.PREFIX):
            properties[name] = value
        elif key in _TABLES:
            merged.add({key: _object(name, value, merged.wrong)}, name)
        elif key in _NAMES:
            merged.add({key: value}, name)
        else:
            known = [f"{PREFIX}{setting.upper()}" for setting in _NAMES]
            merged.wrong.append(unknown(name, known, "unset it", " in the environment"))
    for name, (value, variable) in kafka_properties.properties_of(properties).items():
        merged.add({"kafka": {name: value}}, variable)


def _object(name: str, text: str, wrong: list[str]) -> Mapping[str, object]:
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        wrong.append(f"settings in the environment: {name} is not a JSON object")
        return {}
    return value


def _is_kubernetes(name: str, value: str) -> bool:
    """Return whether a variable is the address of a Service, injected by Kubernetes."""
    if _KUBERNETES.fullmatch(name):
        return True
    return bool(_KUBERNETES_PORT.fullmatch(name) and _KUBERNETES_ADDRESS.fullmatch(value))


def _path_of(config: Path | None) -> Path | None:
    """Return the settings file: the given one, the variable's, the local one, or None."""
    if config is not None:
        return config
    if named := os.environ.get("CAUGHTUP_CONFIG"):
        return Path(named)
    here = Path("caughtup.toml")
    return here if here.exists() else None


def _parsed(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise UserError(f"cannot read the settings file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"the settings file {path} is not TOML{_where(error)}") from None


def _where(error: Exception) -> str:
    """Return the place of an error in TOML, without the library's message: it may hold a secret."""
    if isinstance(error, UnicodeDecodeError):
        return f": byte {error.start} is not text in UTF-8"
    if isinstance(error, RecursionError):
        return ": too many lists or tables in one another"
    found = re.search(r"\(at (line \d+, column \d+|end of document)\)", str(error))
    return f": {found[1]}" if found else ""
