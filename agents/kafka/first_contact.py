"""First contact with a cluster: is it there, does it take our credentials, which one is it."""

from __future__ import annotations

from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from caughtup.agents.errors import UserError
from caughtup.agents.kafka.config import rdkafka_config
from caughtup.agents.settings import Settings

#: A refusal is known after the first, short wait; a slow cluster gets the second.
_TRIES_SECONDS = (2.0, 8.0)
_REFUSED = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED)


class Connection(NamedTuple):
    """A cluster that answered: a client for it, and its id."""

    admin: AdminClient
    cluster: str


def connect(settings: Settings) -> Connection:
    """Connect. Raises UserError when a property is bad, or the cluster is away or refuses us."""
    reasons: list[KafkaError] = []
    try:
        admin = AdminClient(rdkafka_config(settings, error_cb=reasons.append))
    except (KafkaException, TypeError, ValueError) as error:
        raise bad_property(error) from None
    for seconds in _TRIES_SECONDS:
        try:
            return Connection(admin, str(admin.list_topics(timeout=seconds).cluster_id))
        except KafkaException as error:
            # The call itself only says that nobody answered; the reason comes by callback.
            admin.poll(0)
            failure = _telling([*reasons, error.args[0]])
            if _is_refusal(failure):
                break
    raise unreachable(settings, failure)


def unreachable(settings: Settings, error: KafkaError) -> UserError:
    """Return the error that says what to do about a cluster that doesn't answer or refuses us."""
    servers = settings.bootstrap_servers
    if error.code() in _REFUSED:
        return UserError(f"{servers} refused the credentials: check sasl.* under [kafka]")
    if error.code() == KafkaError._SSL:
        return UserError(
            f"no TLS connection to {servers}: {error.str()}; check ssl.* under [kafka]"
        )
    return UserError(
        f"cannot reach Kafka at {servers} ({error.str()}): check bootstrap_servers, "
        "and security.protocol under [kafka]"
    )


def bad_property(error: Exception) -> UserError:
    """Return the error that names the property librdkafka does not take."""
    reason = error.args[0]
    text = reason.str() if isinstance(reason, KafkaError) else str(error)
    return UserError(f"settings under [kafka]: {text}")


def _telling(errors: list[KafkaError]) -> KafkaError:
    return next((error for error in errors if _is_refusal(error)), errors[-1])


def _is_refusal(error: KafkaError) -> bool:
    return error.code() in (*_REFUSED, KafkaError._SSL)
