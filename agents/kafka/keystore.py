"""PKCS #12 for clients that read PEM: librdkafka and Java open it by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from caughtup.agents.errors import UserError
from caughtup.pipelines.extras import install_command

LOCATION, _PASSWORD = "ssl.keystore.location", "ssl.keystore.password"
_MOST_BYTES = 1 << 20


def can_open_keystores() -> bool:
    """Return whether the package is there that opens PKCS #12: an extra."""
    return find_spec("cryptography") is not None


def without_closed(kafka: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the properties without a keystore that only librdkafka can open here."""
    if LOCATION not in kafka or can_open_keystores():
        return kafka
    return {name: value for name, value in kafka.items() if name != LOCATION}


def opened_keystore(kafka: Mapping[str, Any]) -> str | None:
    """Return key and certificates of ``ssl.keystore.location`` as PEM, None where it isn't set.

    Raises UserError, naming the property.
    """
    location = kafka.get(LOCATION)
    if location is None:
        return None
    if not can_open_keystores():
        raise UserError(
            f"setting kafka.{LOCATION}: the package with which aiokafka opens PKCS #12 "
            f"is not installed; type: {install_command('pkcs12')}, or use "
            "ssl.certificate.location and ssl.key.location (openssl pkcs12 converts it to PEM)"
        )
    try:
        with Path(str(location)).open("rb") as file:
            held = file.read(_MOST_BYTES)
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or "it is no path"
        raise UserError(f"setting kafka.{LOCATION}: {location}: {reason}") from None
    return _pem(held, str(location), str(kafka.get(_PASSWORD, "")))


def _pem(held: bytes, location: str, password: str) -> str:
    from cryptography.hazmat.primitives.serialization import (  # an extra, and seldom needed
        Encoding,
        NoEncryption,
        PrivateFormat,
        pkcs12,
    )

    try:
        key, certificate, others = pkcs12.load_key_and_certificates(
            held, password.encode() if password else None
        )
    except Exception:  # noqa: BLE001 - of hostile bytes, or of a password that is wrong
        raise UserError(
            f"setting kafka.{LOCATION}: {location}: the file is not PKCS #12, or {_PASSWORD} does not "
            "open it"
        ) from None
    if key is None or certificate is None:
        raise UserError(
            f"setting kafka.{LOCATION}: {location}: the file lacks a key or a certificate"
        )
    parts = [key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())]
    parts += [each.public_bytes(Encoding.PEM) for each in (certificate, *others)]
    return b"".join(parts).decode()
