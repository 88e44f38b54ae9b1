"""The settings for S3 as the environment variables that its clients know."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from caughtup.agents.configuration.kafka_properties import SecretError, read_secret
from caughtup.agents.configuration.loading import load_settings
from caughtup.agents.errors import UserError
from caughtup.agents.settings import StoreSettings

_PLAIN = {
    "AWS_ENDPOINT_URL": "s3_endpoint",
    "AWS_REGION": "s3_region",
    "AWS_ACCESS_KEY_ID": "s3_access_key",
}
_IN_FILES = {
    "AWS_SECRET_ACCESS_KEY": "s3_secret_key_file",
    "AWS_SESSION_TOKEN": "s3_session_token_file",
}
_S3 = ("s3:", "s3a:", "s3n:")


def s3_variables(settings: StoreSettings) -> dict[str, str]:
    """Return the settings for S3 that are set, by variable; secrets are read from their files.

    Raises UserError for a file that cannot be read.
    """
    found = {name: getattr(settings, setting) for name, setting in _PLAIN.items()}
    if settings.s3_endpoint is not None and settings.s3_endpoint.startswith("http:"):
        found["AWS_ALLOW_HTTP"] = "true"
    for name, setting in _IN_FILES.items():
        path = getattr(settings, setting)
        if path is not None:
            found[name] = _secret(setting, path)
    return {name: value for name, value in found.items() if value is not None}


def store_environment(uri: str, config: Path | None) -> Mapping[str, str]:
    """Return the environment with which to open a store; for S3, settings override it.

    ``config`` is the settings file, as for ``read_settings``; it is read for S3 only. Raises
    UserError.
    """
    return environment_of(uri, lambda: load_settings(config))


def environment_of(uri: str, settings: Callable[[], StoreSettings]) -> Mapping[str, str]:
    """Return the environment with which to open a store; for S3, present settings override it.

    Raises UserError.
    """
    if not uri.startswith(_S3):
        return os.environ
    return {**os.environ, **s3_variables(settings())}


def _secret(setting: str, path: Path) -> str:
    try:
        return read_secret(path)
    except SecretError as error:
        raise UserError(f"setting {setting}: {path}: {error}") from None
