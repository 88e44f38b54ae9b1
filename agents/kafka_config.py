"""One set of connection properties, for each of the clients we use.

Operators write librdkafka's names under ``[kafka]``; aiokafka and Faust get theirs derived here,
Spark in pipelines/kafka_options.py, so that TLS and SASL are configured once.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

import faust

from caughtup.agents.errors import UserError
from caughtup.agents.settings import Settings

_SASL_USER, _SASL_PASSWORD = "sasl.username", "sasl.password"


def rdkafka_config(settings: Settings, **extra: Any) -> dict[str, Any]:
    """Give the properties for confluent-kafka: the operator's own, then ``extra``."""
    return {
        "bootstrap.servers": settings.bootstrap_servers,
        "client.id": settings.application_id,
        # librdkafka logs every failed connection attempt; failures are reported by their callers
        "log_level": 2,
        **settings.kafka,
        **extra,
    }


def aiokafka_config(settings: Settings) -> dict[str, Any]:
    """Give the keyword arguments for aiokafka's clients."""
    protocol = _protocol(settings.kafka)
    config: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap_servers,
        "client_id": settings.application_id,
        "security_protocol": protocol,
    }
    if protocol.endswith("SSL"):
        config["ssl_context"] = _ssl_context(settings.kafka)
    if protocol.startswith("SASL"):
        config["sasl_mechanism"] = _mechanism(settings.kafka)
        config["sasl_plain_username"] = settings.kafka.get(_SASL_USER)
        config["sasl_plain_password"] = settings.kafka.get(_SASL_PASSWORD)
    return config


def faust_credentials(settings: Settings) -> faust.SASLCredentials | faust.SSLCredentials | None:
    """Give Faust's broker credentials; None for a plaintext listener."""
    protocol = _protocol(settings.kafka)
    context = _ssl_context(settings.kafka) if protocol.endswith("SSL") else None
    if protocol.startswith("SASL"):
        credentials = faust.SASLCredentials(
            username=str(settings.kafka.get(_SASL_USER, "")),
            password=str(settings.kafka.get(_SASL_PASSWORD, "")),
            mechanism=_mechanism(settings.kafka),
            ssl_context=context,
        )
        if context is None:
            credentials.protocol = faust.types.auth.AuthProtocol.SASL_PLAINTEXT
        return credentials
    return faust.SSLCredentials(context) if context else None


def _protocol(kafka: Mapping[str, Any]) -> str:
    protocol = str(kafka.get("security.protocol", "plaintext")).upper()
    if protocol not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        raise UserError(f"setting kafka.security.protocol: {protocol} is not a Kafka protocol")
    return protocol


def _mechanism(kafka: Mapping[str, Any]) -> str:
    mechanism = str(kafka.get("sasl.mechanism", kafka.get("sasl.mechanisms", "PLAIN")))
    if mechanism not in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        raise UserError(
            f"setting kafka.sasl.mechanism: {mechanism} is not supported; "
            "use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"
        )
    return mechanism


def _ssl_context(kafka: Mapping[str, Any]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=kafka.get("ssl.ca.location"))
        if certificate := kafka.get("ssl.certificate.location"):
            password = kafka.get("ssl.key.password")
            context.load_cert_chain(certificate, kafka.get("ssl.key.location"), password)
    except (OSError, ssl.SSLError) as error:
        raise UserError(f"setting kafka.ssl.*: {error}") from None
    if kafka.get("ssl.endpoint.identification.algorithm") == "none":
        context.check_hostname = False
    if str(kafka.get("enable.ssl.certificate.verification", "true")).lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
