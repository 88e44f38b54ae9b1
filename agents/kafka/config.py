"""The connection properties for librdkafka and aiokafka, from one set of settings.

Operators write librdkafka's names under ``[kafka]``; aiokafka's are derived here, Spark's
in pipelines/spark/kafka_options.py, so that TLS and SASL are configured once.
models/security/kafka.py has which client supports which property.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from caughtup.agents.errors import UserError
from caughtup.agents.kafka.tls import ssl_context
from caughtup.agents.kafka.tokens.source import AiokafkaTokenProvider, token_callback
from caughtup.agents.settings import Settings
from caughtup.models.errors import CaughtupError
from caughtup.models.security.kafka import KafkaClient, check_properties
from caughtup.models.security.kafka_names import TOKEN_PROVIDER, KafkaProperties
from caughtup.models.security.logins import (
    TICKET_MECHANISM,
    TOKEN_MECHANISM,
    Bearer,
    Login,
    Password,
    Ticket,
    login_of,
    protocol_of,
)


def rdkafka_config(settings: Settings, **extra: object) -> dict[str, Any]:
    """Return the properties for confluent-kafka: the operator's, overridden by ``extra``."""
    kafka: dict[str, object] = dict(settings.kafka)
    if kafka.pop(TOKEN_PROVIDER, None) is not None:
        kafka |= _token_callback_property(settings.kafka)
    return {
        "bootstrap.servers": settings.bootstrap_servers,
        "client.id": settings.application_id,
        # librdkafka logs every failed connection attempt; failures are reported by their callers
        "log_level": 2,
        # When a producer or admin client asks for a topic that does not exist, brokers would create
        # it with their defaults: for example one of ours that was just deleted.
        "allow.auto.create.topics": False,
        # A client whose only connection was to a broker that died looks for another broker in a
        # loop without a pause (librdkafka 2.16): two threads, a core and a half of system time. So
        # the client connects to every broker, each with its own pauses.
        "enable.sparse.connections": False,
        **kafka,
        **extra,
    }


def _token_callback_property(kafka: KafkaProperties) -> dict[str, object]:
    """Return the callback property for tokens; empty for other logins.

    librdkafka itself can ask an endpoint for tokens, but not an operator's function.
    """
    with _naming_setting():
        login = login_of(kafka)
    return (
        {"oauth_cb": token_callback(kafka, login.extensions)} if isinstance(login, Bearer) else {}
    )


class AiokafkaConfig(Mapping[str, object]):
    """The keyword arguments for aiokafka's clients, always with the current password."""

    def __init__(self, fixed: Mapping[str, object], kafka: KafkaProperties) -> None:
        self._fixed = fixed
        self._kafka = kafka

    def __getitem__(self, name: str) -> object:
        if name == "sasl_plain_password" and name in self._fixed:
            return str(self._kafka["sasl.password"])
        return self._fixed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fixed)

    def __len__(self) -> int:
        return len(self._fixed)


def aiokafka_config(settings: Settings) -> AiokafkaConfig:
    """Return the keyword arguments for aiokafka's clients. Raises UserError."""
    with _naming_setting():
        check_properties(settings.kafka, (KafkaClient.AIOKAFKA,))
        protocol, login = protocol_of(settings.kafka), login_of(settings.kafka)
    config: dict[str, object] = {
        "bootstrap_servers": settings.bootstrap_servers,
        "client_id": settings.application_id,
        "security_protocol": protocol,
    }
    if protocol.endswith("SSL"):
        config["ssl_context"] = ssl_context(settings.kafka)
    if login is not None:
        config |= _logging_in(login, settings.kafka)
    return AiokafkaConfig(config, settings.kafka)


def _logging_in(login: Login, kafka: KafkaProperties) -> dict[str, object]:
    match login:
        case Password():
            return {
                "sasl_mechanism": login.mechanism,
                "sasl_plain_username": login.username,
                "sasl_plain_password": login.password,
            }
        case Bearer():
            return {
                "sasl_mechanism": TOKEN_MECHANISM,
                "sasl_oauth_token_provider": AiokafkaTokenProvider(kafka, login.extensions),
            }
        case Ticket():
            return {
                "sasl_mechanism": TICKET_MECHANISM,
                "sasl_kerberos_service_name": login.service,
            }


@contextmanager
def _naming_setting() -> Iterator[None]:
    try:
        yield
    except CaughtupError as error:
        raise UserError(f"setting kafka.{error.message}") from None
