"""How TLS is spoken with brokers: what is trusted, and which certificate is ours."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from caughtup.agents.errors import UserError
from caughtup.agents.kafka.keystore import opened_keystore
from caughtup.models.security.kafka import verifies, verifies_names


def ssl_context(kafka: Mapping[str, Any]) -> ssl.SSLContext:
    """Return how TLS is spoken and a broker's certificate verified.

    Raises UserError, naming the property whose file or value isn't what it has to be.
    """
    location, pem = kafka.get("ssl.ca.location"), kafka.get("ssl.ca.pem")
    of_file = f"{location}: it holds no certificate in PEM"
    with _refused("ssl.ca.pem" if location is None else "ssl.ca.location", of_file):
        file, folder = _authorities(location)
        context = ssl.create_default_context(cafile=file, capath=folder, cadata=pem)
    if ciphers := kafka.get("ssl.cipher.suites"):
        with _refused("ssl.cipher.suites", "none of them is known to OpenSSL here"):
            context.set_ciphers(ciphers)
    if revoked := kafka.get("ssl.crl.location"):
        with _refused("ssl.crl.location", f"{revoked}: it holds no list of revocations in PEM"):
            context.load_verify_locations(cafile=revoked)
            context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
    if (opened := opened_keystore(kafka)) is not None:
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
                context.load_cert_chain(certificate, key, kafka.get("ssl.key.password", ""))
    if not verifies_names(kafka):
        context.check_hostname = False
    if not verifies(kafka):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


@contextmanager
def _refused(name: str, otherwise: str) -> Iterator[None]:
    """Name the property when OpenSSL refuses it: its own words are codes, and may be long."""
    try:
        yield
    except (ssl.SSLError, ValueError):
        raise UserError(f"setting kafka.{name}: {otherwise}") from None
    except OSError as error:
        raise UserError(f"setting kafka.{name}: {error.strerror or otherwise}") from None


def _authorities(location: str | None) -> tuple[str | None, str | None]:
    """Return the file and the folder of the authorities' certificates; neither: the system's."""
    if location is None or location == "probe":  # librdkafka's word for looking for them
        return None, None
    return (None, location) if Path(location).is_dir() else (location, None)


@contextmanager
def _pem_file(kafka: Mapping[str, Any], name: str) -> Iterator[str | None]:
    """Yield the path of a PEM file while it lasts, None where there is none.

    PEM that is given by value gets a file in memory: ssl reads files only, and a key that was
    never on a disk stays off it.
    """
    text = kafka.get(f"{name}.pem")
    if text is None:
        yield kafka.get(f"{name}.location")
        return
    descriptor = os.memfd_create("caughtup")
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
