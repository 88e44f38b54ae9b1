"""One set of connection properties, for each of the clients we use.

Operators write librdkafka's names under ``[kafka]``; aiokafka's are derived here, Spark's
in pipelines/spark/kafka_options.py, so that TLS and SASL are configured once. Who can honour what is
decided in models/security/kafka.py.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from caughtup.agents.errors import UserError
from caughtup.agents.settings import Settings
from caughtup.models.errors import CaughtupError
from caughtup.models.security.kafka import (
    Client,
    check_properties,
    login_of,
    protocol_of,
    verifies,
    verifies_names,
)


def rdkafka_config(settings: Settings, **extra: Any) -> dict[str, Any]:
    """Return the properties for confluent-kafka: the operator's own, then ``extra``."""
    return {
        "bootstrap.servers": settings.bootstrap_servers,
        "client.id": settings.application_id,
        # librdkafka logs every failed connection attempt; failures are reported by their callers
        "log_level": 2,
        # Producers and admin clients would make brokers create a topic by asking for it, with the
        # brokers' defaults: one of ours that was just deleted, say.
        "allow.auto.create.topics": False,
        # A client whose only connection was to a broker that died would look for another one in a
        # loop without a pause (librdkafka 2.16): two threads, a core and a half of system time. So
        # every broker is connected to, each with its own pauses.
        "enable.sparse.connections": False,
        **settings.kafka,
        **extra,
    }


class AiokafkaConfig(Mapping[str, Any]):
    """The keyword arguments for aiokafka's clients; the password is that of the moment."""

    def __init__(self, fixed: Mapping[str, Any], kafka: Mapping[str, Any]) -> None:
        self._fixed = fixed
        self._kafka = kafka

    def __getitem__(self, name: str) -> Any:
        if name == "sasl_plain_password" and name in self._fixed:
            return str(self._kafka["sasl.password"])
        return self._fixed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fixed)

    def __len__(self) -> int:
        return len(self._fixed)


def aiokafka_config(settings: Settings) -> AiokafkaConfig:
    """Return the keyword arguments for aiokafka's clients. Raises UserError."""
    with _named():
        check_properties(settings.kafka, (Client.AIOKAFKA,))
    protocol, login = protocol_of(settings.kafka), login_of(settings.kafka)
    config: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap_servers,
        "client_id": settings.application_id,
        "security_protocol": protocol,
    }
    if protocol.endswith("SSL"):
        config["ssl_context"] = ssl_context(settings.kafka)
    if login is not None:
        config["sasl_mechanism"] = login.mechanism
        config["sasl_plain_username"] = login.username
        config["sasl_plain_password"] = login.password
    return AiokafkaConfig(config, settings.kafka)


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except CaughtupError as error:
        raise UserError(f"setting kafka.{error.message}") from None


def ssl_context(kafka: Mapping[str, Any]) -> ssl.SSLContext:
    """Return how TLS is spoken and a broker's certificate verified.

    Raises UserError, naming the property whose file or value isn't what it has to be.
    """
    location, pem = kafka.get("ssl.ca.location"), kafka.get("ssl.ca.pem")
    of_file = f"{location}: it holds no certificate in PEM"
    with _refused("ssl.ca.pem" if location is None else "ssl.ca.location", of_file):
        context = ssl.create_default_context(**_authority(location), cadata=pem)
    if ciphers := kafka.get("ssl.cipher.suites"):
        with _refused("ssl.cipher.suites", "none of them is known to OpenSSL here"):
            context.set_ciphers(ciphers)
    if revoked := kafka.get("ssl.crl.location"):
        with _refused("ssl.crl.location", f"{revoked}: it holds no list of revocations in PEM"):
            context.load_verify_locations(cafile=revoked)
            context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
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


def _authority(location: str | None) -> dict[str, str]:
    """Return where authorities are, as OpenSSL's arguments; none means the system's own."""
    if location is None or location == "probe":  # librdkafka's word for looking for them
        return {}
    return {"capath" if Path(location).is_dir() else "cafile": location}


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
