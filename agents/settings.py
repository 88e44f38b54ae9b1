"""The service's settings: one file, ``CAUGHTUP_*`` variables, validated before any socket."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_settings import BaseSettings, SettingsConfigDict

from caughtup.agents.errors import UserError
from caughtup.models.parameters import (
    DEFAULTS,
    MINIMUMS,
    MOST_TAGS,
    TAGS,
    ApplicationParameters,
)

#: Variables with our prefix that aren't settings: read elsewhere.
OTHER_VARIABLES = frozenset({"CAUGHTUP_CONFIG", "CAUGHTUP_CACHE"})
#: What Kubernetes injects for a service named caughtup.
_KUBERNETES = re.compile(r"CAUGHTUP_(SERVICE_(HOST|PORT)(_\w+)?|PORT(_\d+_\w+)?)")

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

    model_config = SettingsConfigDict(env_prefix="CAUGHTUP_", extra="forbid", frozen=True)

    # Where to find the cluster: host:port, several separated by commas.
    bootstrap_servers: str = "127.0.0.1:9092"
    # Where the page, /metrics and /ready listen. Loopback unless told otherwise.
    web_host: str = "127.0.0.1"
    web_port: int = Field(default=8080, ge=0, le=65535)
    # The service's own consumer group, and the prefix of its client ids.
    application_id: str = Field(default="caughtup", min_length=1)
    # The topics it creates: caughtup-end-offsets and so on. -1: the brokers' own default.
    topic_prefix: str = "caughtup-"
    topic_replication_factor: int = Field(default=-1, ge=-1)
    # Seconds between two looks at end offsets, and at reassignments.
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
    # Any librdkafka property, security ones above all: passed through to every client.
    kafka: dict[str, str | int | bool] = {}
    # Assignor configs by application id, under Kafka's own names; and its changelog topics.
    applications: dict[str, _ApplicationConfig] = {}  # type: ignore[valid-type]

    def parameters(self) -> dict[str, ApplicationParameters]:
        """Give the applications' assignor parameters as the models take them."""
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
    Raises UserError, naming the setting, for an unknown one or a bad value.
    """
    unknown = [
        name
        for name in os.environ
        if name.startswith("CAUGHTUP_")
        and name not in OTHER_VARIABLES
        and name.removeprefix("CAUGHTUP_").lower() not in Settings.model_fields
        and not _KUBERNETES.fullmatch(name)
    ]
    if unknown:
        raise UserError(f"unknown setting {min(unknown)} in the environment; unset it")
    from_file = _read(config)
    given = {key: value for key, value in overrides.items() if value is not None}
    from_environment = {
        field for field in Settings.model_fields if f"CAUGHTUP_{field.upper()}" in os.environ
    }
    merged = {k: v for k, v in from_file.items() if k not in from_environment} | given
    try:
        return Settings(**merged)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            raise UserError(f"unknown setting {name}; see docs/operating.md for the list") from None
        raise UserError(f"setting {name}: {first['msg'].lower()}") from None
    except ValueError as error:  # a CAUGHTUP_* variable that should be JSON and isn't
        raise UserError(f"settings in the environment: {error}") from None


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
