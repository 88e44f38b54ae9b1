"""A client's login by its properties: with a password, a token or a Kerberos ticket."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from caughtup.models.errors import CaughtupError
from caughtup.models.security.kafka_names import TOKEN_PROVIDER, KafkaProperties, names

#: Mechanisms with a user name and a password, which every client has.
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
TOKEN_MECHANISM, TICKET_MECHANISM = "OAUTHBEARER", "GSSAPI"
USE_ANOTHER = (
    "use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 with sasl.username and sasl.password, OAUTHBEARER or "
    "GSSAPI"
)
OAUTH = "sasl.oauthbearer."
#: Both of the credentials for a token endpoint have two names.
_CLIENT_ID = (f"{OAUTH}client.id", f"{OAUTH}client.credentials.client.id")
_CLIENT_SECRET = (f"{OAUTH}client.secret", f"{OAUTH}client.credentials.client.secret")
_ENDPOINT = f"{OAUTH}token.endpoint.url"
_EXTENSIONS = f"{OAUTH}extensions"
_GRANT = f"{OAUTH}grant.type"
_USE_PROVIDER = f"set {TOKEN_PROVIDER} to a function that does"
#: The properties for getting a token: a client id and its secret, or a function.
TOKEN_PROPERTIES = frozenset({*_CLIENT_ID, *_CLIENT_SECRET, TOKEN_PROVIDER}) | names(
    """
    sasl.oauthbearer.method sasl.oauthbearer.grant.type sasl.oauthbearer.token.endpoint.url
    sasl.oauthbearer.scope sasl.oauthbearer.extensions sasl.oauthbearer.config
    sasl.oauthbearer.sub.claim.name https.ca.location https.ca.pem
    """
)
#: Properties of further ways to get a token, which only librdkafka has.
_OWN_WAYS = (
    f"{OAUTH}assertion.",
    f"{OAUTH}metadata.authentication.type",
    "enable.sasl.oauthbearer.unsecure.jwt",
)
_PROVIDER = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
#: RFC 7628: names of extensions are letters, their values have no control characters.
_EXTENSION = re.compile(r"\s*([A-Za-z]+)=([\x21-\x2b\x2d-\x7e]*)\s*")


class Password(NamedTuple):
    """A user name and a password."""

    mechanism: str
    username: str
    password: str


class ClientCredentials(NamedTuple):
    """A token endpoint with a client id and its secret (OAuth's client credentials)."""

    url: str
    client_id: str
    client_secret: str
    scope: str


class Provider(NamedTuple):
    """A function that returns a token, as ``MODULE:FUNCTION``, and its argument."""

    function: str
    config: str


class Bearer(NamedTuple):
    """A token's source, and the extensions that are sent with it."""

    source: ClientCredentials | Provider
    extensions: Mapping[str, str]


class Ticket(NamedTuple):
    """A Kerberos ticket for the brokers' service."""

    service: str


Login = Password | Bearer | Ticket


def bad_property(message: str) -> CaughtupError:
    """Return the error of a property; the message begins with its name."""
    return CaughtupError("bad_kafka_property", message)


def protocol_of(properties: KafkaProperties) -> str:
    """Return security.protocol in upper case. Raises CaughtupError ``bad_kafka_property``."""
    protocol = str(properties.get("security.protocol", "PLAINTEXT")).upper()
    if protocol not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        raise bad_property(f"security.protocol: {protocol} is not a Kafka protocol")
    return protocol


def mechanism_of(properties: KafkaProperties) -> str | None:
    """Return the SASL mechanism, None for a protocol without a login.

    Raises CaughtupError ``bad_kafka_property`` if none is set.
    """
    if not protocol_of(properties).startswith("SASL"):
        return None
    mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms"))
    if mechanism is None:  # the clients' defaults differ
        raise bad_property(f"sasl.mechanism: it is not set; {USE_ANOTHER}")
    return str(mechanism)


def login_of(properties: KafkaProperties) -> Login | None:
    """Return a client's login, None for a protocol without one.

    Raises CaughtupError ``bad_kafka_property`` for a missing or unsupported property.
    """
    mechanism = mechanism_of(properties)
    if mechanism is None:
        return None
    if mechanism in PASSWORD_MECHANISMS:
        return _password(mechanism, properties)
    if mechanism == TOKEN_MECHANISM:
        return _bearer(properties)
    if mechanism == TICKET_MECHANISM:
        return Ticket(str(properties.get("sasl.kerberos.service.name", "kafka")))
    raise bad_property(f"sasl.mechanism: {mechanism} is not supported; {USE_ANOTHER}")


def has_own_way(properties: KafkaProperties) -> bool:
    """Return whether tokens come in a way that only librdkafka has."""
    return any(name.startswith(_OWN_WAYS) for name in properties) or _grant(properties) != (
        "client_credentials"
    )


def _password(mechanism: str, properties: KafkaProperties) -> Password:
    return Password(
        mechanism,
        _needed(properties, mechanism, "sasl.username"),
        _needed(properties, mechanism, "sasl.password"),
    )


def _bearer(properties: KafkaProperties) -> Bearer:
    provider = properties.get(TOKEN_PROVIDER)
    extensions = _extensions(str(properties.get(_EXTENSIONS, "")))
    oidc = str(properties.get(f"{OAUTH}method", "default")).lower() == "oidc"
    if provider is not None:
        if oidc:
            raise bad_property(
                f"{TOKEN_PROVIDER}: {OAUTH}method is oidc as well; leave one of them out"
            )
        if not _PROVIDER.fullmatch(str(provider)):
            raise bad_property(f"{TOKEN_PROVIDER}: it has to be MODULE:FUNCTION")
        config = str(properties.get(f"{OAUTH}config", ""))
        return Bearer(Provider(str(provider), config), extensions)
    if not oidc:
        raise bad_property(
            f"sasl.mechanism: OAUTHBEARER has to get tokens somewhere; set {OAUTH}method to oidc, "
            f"with {_ENDPOINT}, or {_USE_PROVIDER}"
        )
    if _grant(properties) != "client_credentials":
        raise bad_property(
            f"{_GRANT}: aiokafka, which the service uses as well, has client_credentials; "
            f"{_USE_PROVIDER}"
        )
    url = _needed(properties, TOKEN_MECHANISM, _ENDPOINT)
    if not re.fullmatch(r"https?://[\x21-\x7e]+", url):
        raise bad_property(f"{_ENDPOINT}: it is not an address that begins with https://")
    endpoint = ClientCredentials(
        url,
        _needed(properties, TOKEN_MECHANISM, *_CLIENT_ID),
        _needed(properties, TOKEN_MECHANISM, *_CLIENT_SECRET),
        str(properties.get(f"{OAUTH}scope", "")),
    )
    return Bearer(endpoint, extensions)


def _grant(properties: KafkaProperties) -> str:
    return str(properties.get(_GRANT, "client_credentials")).lower()


def _needed(properties: KafkaProperties, mechanism: str, *either: str) -> str:
    for name in either:
        if value := properties.get(name):
            return str(value)
    raise bad_property(f"{either[0]}: it is not set, and {mechanism} needs it")


def _extensions(text: str) -> dict[str, str]:
    """Read ``name=value,name=value``; ``auth`` is refused, since it would replace the token."""
    found = {}
    for part in text.split(",") if text.strip() else ():
        pair = _EXTENSION.fullmatch(part)
        if pair is None or pair[1].lower() == "auth":
            raise bad_property(f"{_EXTENSIONS}: it has to be NAME=VALUE, several with commas")
        found[pair[1]] = pair[2]
    return found


def complaints(
    check: Callable[[KafkaProperties], object], properties: KafkaProperties
) -> list[str]:
    """Return the error message of a check in a list; empty without an error."""
    try:
        check(properties)
    except CaughtupError as error:
        return [error.message]
    return []
