"""The service's settings: one file, ``CAUGHTUP_*`` variables, validated before any socket."""

from __future__ import annotations

import json
import logging
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from caughtup.agents import kafka_settings
from caughtup.agents.errors import UserError
from caughtup.models.parameters import DEFAULTS, MINIMUMS, MOST_TAGS, TAGS, ApplicationParameters
from caughtup.models.records.topics import DEFAULT_PREFIX

log = logging.getLogger(__name__)

#: Variables with our prefix that aren't settings: read elsewhere.
OTHER_VARIABLES = frozenset({"CAUGHTUP_CONFIG", "CAUGHTUP_CACHE"})
#: What Kubernetes injects for Services named caughtup, caughtup-kafka and caughtup-…
_KUBERNETES = re.compile(
    r"CAUGHTUP_(\w+_)?(SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_\w+)|CAUGHTUP_(KAFKA_)?PORT"
)
#: The one whose name may be a setting's: that of caughtup-web is CAUGHTUP_WEB_PORT.
_KUBERNETES_PORT = re.compile(r"CAUGHTUP_\w+_PORT")
_KUBERNETES_ADDRESS = re.compile(r"(tcp|udp|sctp)://\S+:\d+")
#: Settings that are tables: those of the variable are added to those of the file.
_TABLES = ("kafka", "applications")

_ApplicationConfig: type[BaseModel] = create_model(
    "_ApplicationConfig",
    __config__=ConfigDict(extra="forbid", frozen=True),
    changelogs=(dict[int, tuple[str, ...]] | None, None),
    tags=(tuple[str, ...] | None, Field(default=None, alias=TAGS, max_length=MOST_TAGS)),
    **{
        name.replace(".", "_"): (int | None, Field(default=None, alias=name, ge=MINIMUMS[name]))
        for name in DEFAULTS
    },  # type: ignore[call-overload]
)


class Settings(BaseSettings):
    """Everything that can be set; each field's comment says what it does."""

    model_config = SettingsConfigDict(
        env_prefix="CAUGHTUP_",
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,  # a password may be in it
    )

    # Where to find the cluster: host:port, several separated by commas.
    bootstrap_servers: str = "127.0.0.1:9092"
    # Where the page, /metrics and /ready listen. Loopback unless told otherwise.
    web_host: str = "127.0.0.1"
    web_port: int = Field(default=8080, ge=0, le=65535)
    # Host names under which it is asked there, beside addresses and this machine's own; *: any.
    web_allowed_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    # PEM files: with them it speaks TLS. Read again when they change, as the token is.
    web_tls_certificate: Path | None = None
    web_tls_key: Path | None = None
    # A file with the token that whoever asks has to send, as Bearer or as a password.
    web_token_file: Path | None = None
    # The service's own consumer group, and the prefix of its client ids.
    application_id: str = Field(default="caughtup", min_length=1)
    # The topics it creates: caughtup-end-offsets and so on. -1: the brokers' own default.
    topic_prefix: str = DEFAULT_PREFIX
    topic_replication_factor: int = Field(default=-1, ge=-1)
    # Seconds between two listings of end offsets, and two observations of reassignments.
    end_offsets_interval: float = Field(default=1.0, gt=0)
    reassignments_interval: float = Field(default=2.0, gt=0)
    # How long a reassignment may take from now on before it is called slow, in seconds; none: any.
    reassignment_budget: float | None = Field(default=None, gt=0)
    # Seconds between two writings of what changed in the lag table to caughtup-lag; 0: never.
    lag_interval: float = Field(default=30.0, ge=0)
    # Also serve lag under kafka_exporter's names, for dashboards that have them.
    compat_metrics: bool = False
    # A file of keys, of which the first signs recommendations; none: they aren't signed.
    signing_key_file: Path | None = None
    log_level: str = Field(default="info", pattern="^(debug|info|warning|error)$")
    # Any librdkafka property, security ones above all: passed on to every client.
    kafka: Annotated[dict[str, str | int | bool], NoDecode] = Field(default={}, repr=False)
    # Assignor configs by application id, under Kafka's own names; and its changelog topics.
    applications: dict[str, _ApplicationConfig] = {}  # type: ignore[valid-type]

    @field_validator("web_allowed_hosts", mode="before")
    @classmethod
    def _separate(cls, given: object) -> object:
        """Split a variable's names at commas."""
        if isinstance(given, str):
            return [name.strip() for name in given.split(",") if name.strip()]
        return given

    @model_validator(mode="after")
    def _has_certificate(self) -> Self:
        if self.web_tls_key is not None and self.web_tls_certificate is None:
            raise ValueError("web_tls_key needs web_tls_certificate")
        return self

    def parameters(self) -> dict[str, ApplicationParameters]:
        """Return the applications' assignor parameters, as the models have them."""
        found = {}
        for name, application in self.applications.items():
            given = application.model_dump(by_alias=True, exclude_none=True)
            changelogs = given.pop("changelogs", None)
            tags = given.pop(TAGS, None)
            found[name] = ApplicationParameters(config=given, changelogs=changelogs, tags=tags)
        return found


def load_settings(config: Path | None = None, **overrides: Any) -> Settings:
    """Read the settings: options win over ``CAUGHTUP_*`` variables, these over the file.

    ``config`` is the file; without it ``$CAUGHTUP_CONFIG``, then ``./caughtup.toml`` if there.
    Tables are merged key by key. Raises UserError, naming the setting, for an unknown one or a
    bad value; never with the value, which may be a secret.
    """
    variables = {k: v for k, v in os.environ.items() if not _is_kubernetes(k, v)}
    _refuse_unknown(variables)
    given = {key: value for key, value in overrides.items() if value is not None}
    merged = _without_injected() | {
        key: value
        for key, value in _read(config).items()
        if key in _TABLES or f"CAUGHTUP_{key.upper()}" not in variables
    }
    for table in _TABLES:
        places = merged.get(table, {}), given.pop(table, {})
        merged[table] = _merged_table(table, *places, variables)
    try:
        return Settings(**(merged | given))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise UserError(f"unknown setting {name}; see docs/operating.md for the list") from None
        reason = first["msg"].removeprefix("Value error, ")
        raise UserError(f"setting {name}: {reason.lower()}" if name else reason) from None


def _refuse_unknown(variables: Mapping[str, str]) -> None:
    unknown = [
        name
        for name in variables
        if name.startswith("CAUGHTUP_")
        and name not in OTHER_VARIABLES
        and name.removeprefix("CAUGHTUP_").lower() not in Settings.model_fields
        and not name.startswith(kafka_settings.PREFIX)
    ]
    if unknown:
        raise UserError(f"unknown setting {min(unknown)} in the environment; unset it")


def _is_kubernetes(name: str, value: str) -> bool:
    """Return whether Kubernetes injected a variable, to tell where a Service is."""
    if _KUBERNETES.fullmatch(name):
        return True
    return bool(_KUBERNETES_PORT.fullmatch(name) and _KUBERNETES_ADDRESS.fullmatch(value))


def _without_injected() -> dict[str, Any]:
    """Return the defaults of settings whose variable Kubernetes injected, and log which."""
    defaults = {}
    for key, field in Settings.model_fields.items():
        name = f"CAUGHTUP_{key.upper()}"
        if name in os.environ and _is_kubernetes(name, os.environ[name]):
            log.warning("%s is a Service's address that Kubernetes injected: ignored", name)
            defaults[key] = field.default
    return defaults


def _merged_table(
    table: str,
    from_file: object,
    from_options: Mapping[str, Any],
    variables: Mapping[str, str],
) -> object:
    """Merge a table's places; what isn't a table is left to validation, which names it."""
    if not isinstance(from_file, Mapping):
        return from_file
    places = [from_file, _variable(f"CAUGHTUP_{table.upper()}")]
    if table != "kafka":
        return {key: value for place in (*places, from_options) for key, value in place.items()}
    return kafka_settings.merged_properties(
        *places, kafka_settings.properties_of(variables), from_options
    )


def _variable(name: str) -> Mapping[str, Any]:
    try:
        value = json.loads(os.environ.get(name) or "{}")
    except json.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise UserError(f"settings in the environment: {name} is not a JSON object")
    return value


def _read(config: Path | None) -> dict[str, Any]:
    path = config or (Path(p) if (p := os.environ.get("CAUGHTUP_CONFIG")) else None)
    if path is None:
        path = Path("caughtup.toml")
        if not path.exists():
            return {}
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise UserError(f"cannot read the settings file {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"the settings file {path} is not TOML: {error}") from None
