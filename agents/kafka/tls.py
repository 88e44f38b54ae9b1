"""The TLS context for connections to brokers, from librdkafka's ``ssl.*`` properties.

PKCS #12 keystores are converted to PEM here; librdkafka and Java open them by themselves.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from caughtup.agents.errors import UserError
from caughtup.models.security.kafka import verifies, verifies_names
from caughtup.models.security.kafka_names import KafkaProperties
from caughtup.pipelines.extras import install_command

KEYSTORE_LOCATION, _KEYSTORE_PASSWORD = "ssl.keystore.location", "ssl.keystore.password"
_MOST_BYTES = 1 << 20


def ssl_context(kafka: KafkaProperties) -> ssl.SSLContext:
    """Return a context with the trusted authorities, our certificate and how to verify a broker's.

    Raises UserError, naming the property whose file or value is wrong.
    """
    location, pem = _text(kafka, "ssl.ca.location"), _text(kafka, "ssl.ca.pem")
    of_file = f"{location}: it holds no certificate in PEM"
    with _refused("ssl.ca.pem" if location is None else "ssl.ca.location", of_file):
        file, folder = _authorities(location)
        context = ssl.create_default_context(cafile=file, capath=folder, cadata=pem)
    if ciphers := _text(kafka, "ssl.cipher.suites"):
        with _refused("ssl.cipher.suites", "none of them is known to OpenSSL here"):
            context.set_ciphers(ciphers)
    if revoked := _text(kafka, "ssl.crl.location"):
        with _refused("ssl.crl.location", f"{revoked}: it holds no list of revocations in PEM"):
            context.load_verify_locations(cafile=revoked)
            context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
    if (opened := keystore_as_pem(kafka)) is not None:
        kafka = {**kafka, "ssl.certificate.pem": opened, "ssl.key.password": ""}
    with (
        _pem_file(kafka, "ssl.certificate") as certificate,
        _pem_file(kafka, "ssl.key") as key,
    ):
        if certificate is not None:
            with _refused(
                "ssl.certificate.*",
                "certificate and key don't fit together, aren't PEM, or ssl.key.password doesn't "
                "open the key",
            ):
                context.load_cert_chain(certificate, key, _text(kafka, "ssl.key.password") or "")
    if not verifies_names(kafka):
        context.check_hostname = False
    if not verifies(kafka):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@contextmanager
def _refused(name: str, otherwise: str) -> Iterator[None]:
    """Turn OpenSSL's errors into a UserError that names the property and says ``otherwise``.

    OpenSSL's own messages are codes, and may be long.
    """
    try:
        yield
    except (ssl.SSLError, ValueError):
        raise UserError(f"setting kafka.{name}: {otherwise}") from None
    except OSError as error:
        raise UserError(f"setting kafka.{name}: {error.strerror or otherwise}") from None


def _text(kafka: KafkaProperties, name: str) -> str | None:
    value = kafka.get(name)
    return None if value is None else str(value)


def _authorities(location: str | None) -> tuple[str | None, str | None]:
    """Return the file or the folder of the trusted authorities; None, None for the system's."""
    if location is None or location == "probe":  # librdkafka's value for "find the system's"
        return None, None
    return (None, location) if Path(location).is_dir() else (location, None)


@contextmanager
def _pem_file(kafka: KafkaProperties, name: str) -> Iterator[str | None]:
    """Yield the path of a PEM file that exists inside the context; None if there is none.

    PEM that is given by value is put into a file in memory: the ssl module reads only files, and
    the key must not get onto a disk.
    """
    text = _text(kafka, f"{name}.pem")
    if text is None:
        yield _text(kafka, f"{name}.location")
        return
    descriptor = os.memfd_create("caughtup")
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def can_open_keystores() -> bool:
    """Return whether the package that opens PKCS #12 (an extra) is installed."""
    return find_spec("cryptography") is not None


def without_unopenable_keystore(kafka: KafkaProperties) -> KafkaProperties:
    """Return the properties, without the keystore if only librdkafka can open it here."""
    if KEYSTORE_LOCATION not in kafka or can_open_keystores():
        return kafka
    return {name: value for name, value in kafka.items() if name != KEYSTORE_LOCATION}


def keystore_as_pem(kafka: KafkaProperties) -> str | None:
    """Return key and certificates of ``ssl.keystore.location`` as PEM; None if it is not set.

    Raises UserError, naming the property.
    """
    location = kafka.get(KEYSTORE_LOCATION)
    if location is None:
        return None
    if not can_open_keystores():
        raise UserError(
            f"setting kafka.{KEYSTORE_LOCATION}: the package with which aiokafka opens PKCS #12 "
            f"is not installed; type: {install_command('pkcs12')}, or use "
            "ssl.certificate.location and ssl.key.location (openssl pkcs12 converts it to PEM)"
        )
    try:
        with Path(str(location)).open("rb") as file:
            held = file.read(_MOST_BYTES)
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or "it is not a path"
        raise UserError(f"setting kafka.{KEYSTORE_LOCATION}: {location}: {reason}") from None
    return _pem_of_keystore(held, str(location), str(kafka.get(_KEYSTORE_PASSWORD, "")))


def _pem_of_keystore(held: bytes, location: str, password: str) -> str:
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
    except Exception:  # noqa: BLE001 - any error that hostile bytes or a wrong password cause
        raise UserError(
            f"setting kafka.{KEYSTORE_LOCATION}: {location}: the file is not PKCS #12, or {_KEYSTORE_PASSWORD} does not "
            "open it"
        ) from None
    if key is None or certificate is None:
        raise UserError(
            f"setting kafka.{KEYSTORE_LOCATION}: {location}: the file lacks a key or a certificate"
        )
    parts = [key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())]
    parts += [each.public_bytes(Encoding.PEM) for each in (certificate, *others)]
    return b"".join(parts).decode()
