"""The security properties that each client can honour; others are refused by name.

An operator writes librdkafka's names once, and several clients connect with them. A client that
doesn't know a property would silently go without it: so it is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from enum import Enum
from typing import NamedTuple

from caughtup.models.security.kafka_names import (
    JAVA,
    LIBRDKAFKA,
    TOKEN_PROVIDER,
    KafkaProperties,
    is_security,
    names,
    spelling,
)
from caughtup.models.security.logins import (
    OAUTH,
    TOKEN_MECHANISM,
    TOKEN_PROPERTIES,
    USE_ANOTHER,
    bad_property,
    complaints,
    has_own_way,
    login_of,
    mechanism_of,
    protocol_of,
)

_USE_PEM = "use ssl.certificate.location and ssl.key.location (openssl pkcs12 makes PEM of PKCS#12)"
_USE_AUTHORITY = "use ssl.ca.location or ssl.ca.pem"
#: The properties that every client supports, each in its own form.
_EVERYBODY = names(
    """
    security.protocol sasl.mechanism sasl.mechanisms sasl.username sasl.password
    ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem
    ssl.key.location ssl.key.pem ssl.key.password
    ssl.endpoint.identification.algorithm enable.ssl.certificate.verification
    """
)
_USE_PROVIDER = f"use a client's id and secret, or {TOKEN_PROVIDER}"
#: Further key and TLS properties that aiokafka supports.
_TLS_TOO = names("ssl.cipher.suites ssl.crl.location ssl.keystore.location ssl.keystore.password")
_KERBEROS = frozenset(name for name in LIBRDKAFKA if name.startswith("sasl.kerberos."))
#: Token properties that Java lacks: it calls no Python function, and has other HTTPS settings.
_NOT_JAVAS = frozenset({TOKEN_PROVIDER, f"{OAUTH}config", "https.ca.location", "https.ca.pem"})
#: Pairs with one meaning: if both are set, each client chooses one by its own rules.
_EXCLUSIVE = (
    ("sasl.mechanism", "sasl.mechanisms"),
    ("ssl.certificate.location", "ssl.certificate.pem"),
    ("ssl.key.location", "ssl.key.pem"),
    ("ssl.keystore.location", "ssl.certificate.location"),
    ("ssl.keystore.location", "ssl.certificate.pem"),
    ("ssl.keystore.location", "ssl.key.location"),
    ("ssl.keystore.location", "ssl.key.pem"),
    ("https.ca.location", "https.ca.pem"),
    (f"{OAUTH}client.id", f"{OAUTH}client.credentials.client.id"),
    (f"{OAUTH}client.secret", f"{OAUTH}client.credentials.client.secret"),
)


#: Addresses on this machine, to which nothing crosses the network.
_LOOPBACK = tuple(f"http://{host}" for host in ("127.", "localhost:", "localhost/", "[::1]"))


class _Rules(NamedTuple):
    label: str
    honoured: frozenset[str]
    #: Prefix → what to do instead; the first matching prefix counts.
    instead: Mapping[str, str]


class KafkaClient(Enum):
    """A library that connects to Kafka, with its own form of the same properties."""

    LIBRDKAFKA = _Rules(
        "librdkafka",
        LIBRDKAFKA | {TOKEN_PROVIDER},
        {
            "ssl.truststore.": _USE_AUTHORITY,
            "ssl.keystore.": _USE_PEM,
            "sasl.jaas.config": USE_ANOTHER,
            "": "see docs/connecting.md for the list",
        },
    )
    #: Faust connects with it, and so does agents/kafka/protocol/connection.py.
    AIOKAFKA = _Rules(
        "aiokafka, which the service uses as well,",
        _EVERYBODY | _KERBEROS | TOKEN_PROPERTIES | _TLS_TOO,
        {
            "ssl.keystore.": _USE_PEM,
            "ssl.ca.": _USE_AUTHORITY,
            "ssl.": "set it in openssl.cnf, for the whole process",
            OAUTH: _USE_PROVIDER,
            "enable.sasl.": _USE_PROVIDER,
            "": USE_ANOTHER,
        },
    )
    SPARK = _Rules(
        "Spark, which uses Kafka's Java client,",
        _EVERYBODY | JAVA | (TOKEN_PROPERTIES - _NOT_JAVAS),
        {
            TOKEN_PROVIDER: "use OIDC, or Java's own sasl.login.callback.handler.class",
            "ssl.ca.": _USE_AUTHORITY,
            "ssl.": "set Java's own, such as jdk.tls.namedGroups, in Spark's extraJavaOptions",
            "": "use Java's own sasl.jaas.config",
        },
    )


#: The clients of ``caughtup run`` and of the commands that do a part of its work.
SERVICE = (KafkaClient.LIBRDKAFKA, KafkaClient.AIOKAFKA)


def check_properties(properties: KafkaProperties, clients: Iterable[KafkaClient]) -> None:
    """Raise CaughtupError ``bad_kafka_property`` if one of the clients can't honour a property.

    The message begins with the property.
    """
    for problem in problems(properties, clients):
        raise bad_property(problem)


def problems(properties: KafkaProperties, clients: Iterable[KafkaClient]) -> Iterator[str]:
    """Yield a line, with its name first, for each property that one of the clients can't honour."""
    told = set[str]()
    for problem in _problems(properties, clients):
        name = problem.partition(":")[0]
        if name not in told:
            told.add(name)
            yield problem


def _problems(properties: KafkaProperties, clients: Iterable[KafkaClient]) -> Iterator[str]:
    for client in clients:
        given = properties
        if client is KafkaClient.SPARK:
            given = {spelling(name): value for name, value in properties.items()}
            yield from complaints(_check_for_java, given)
        for name in sorted(given):
            if is_security(name) and name not in client.value.honoured:
                yield _refusal(client, name)
        if _logs_in_as_told(client, given):
            yield from complaints(login_of, given)
    for one, other in _EXCLUSIVE:
        if one in properties and other in properties and properties[one] != properties[other]:
            yield f"{one}: {other} is set as well; leave one of them out"
    yield from complaints(protocol_of, properties)
    yield from complaints(verifies, properties)


def verifies(properties: KafkaProperties) -> bool:
    """Return whether the brokers' certificates are verified, which holds for all clients.

    Raises CaughtupError ``bad_kafka_property`` for a value that isn't one of librdkafka's booleans.
    """
    name = "enable.ssl.certificate.verification"
    text = str(properties.get(name, True)).lower()
    if text not in ("true", "t", "1", "false", "f", "0"):
        raise bad_property(f"{name}: it is neither true nor false")
    return text in ("true", "t", "1")


def verifies_names(properties: KafkaProperties) -> bool:
    """Return whether a broker's certificate must have the name of the connection."""
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https")
    return str(algorithm).lower() not in ("none", "")


def exposures(properties: KafkaProperties) -> Iterator[str]:
    """Yield a line for each setting that is less safe than it seems."""
    protocol = protocol_of(properties)
    if protocol == "SASL_PLAINTEXT":
        yield (
            "security.protocol is SASL_PLAINTEXT: credentials and all that is read cross the "
            "network unencrypted; SASL_SSL encrypts them"
        )
    unused = sorted(name for name in properties if is_security(name))
    if protocol == "PLAINTEXT" and unused not in ([], ["security.protocol"]):
        without = ", ".join(name for name in unused if name != "security.protocol")
        yield (f"security.protocol is PLAINTEXT, which ignores {without}: nothing is encrypted")
    if protocol == "SSL" and any(name.startswith("sasl.") for name in unused):
        without = ", ".join(name for name in unused if name.startswith("sasl."))
        yield f"security.protocol is SSL, which ignores {without}: SASL_SSL logs in"
    if protocol.endswith("SSL") and not verifies(properties):
        yield (
            "enable.ssl.certificate.verification is false: whoever is on the way to the brokers "
            "can pretend to be them, and read all of it, credentials included"
        )
    endpoint = str(properties.get(f"{OAUTH}token.endpoint.url", ""))
    if endpoint.startswith("http://") and not endpoint.startswith(_LOOPBACK):
        yield (
            f"{OAUTH}token.endpoint.url begins with http://: the client secret and the tokens "
            "cross the network unencrypted; https:// encrypts them"
        )


def _logs_in_as_told(client: KafkaClient, given: KafkaProperties) -> bool:
    """Return whether a client logs in as in ``login_of``: librdkafka and Java have more ways."""
    if client is KafkaClient.LIBRDKAFKA:
        return not complaints(mechanism_of, given) and (
            mechanism_of(given) == TOKEN_MECHANISM and not has_own_way(given)
        )
    if client is KafkaClient.SPARK:
        told = "sasl.username" in given or f"{OAUTH}method" in given
        return told and "sasl.jaas.config" not in given
    return True


def _check_for_java(properties: KafkaProperties) -> None:
    if not verifies(properties):
        raise bad_property(
            "enable.ssl.certificate.verification: Spark, which uses Kafka's Java client, always "
            f"verifies; {_USE_AUTHORITY}"
        )
    suites = str(properties.get("ssl.cipher.suites", "TLS_")).split(",")
    if not all(suite.strip().startswith(("TLS_", "SSL_")) for suite in suites):
        raise bad_property(
            "ssl.cipher.suites: Spark, which uses Kafka's Java client, has other names for them; "
            "use those, such as TLS_AES_256_GCM_SHA384, for its jobs"
        )


def _refusal(client: KafkaClient, name: str) -> str:
    label, honoured, by_prefix = client.value
    prefix, instead = next(given for given in by_prefix.items() if name.startswith(given[0]))
    if name in LIBRDKAFKA:
        return f"{name}: {label} cannot honour it; {instead}"
    meant = get_close_matches(name, sorted(honoured), 1, 0.8)
    if meant and not (prefix and client is KafkaClient.LIBRDKAFKA):
        instead = f"did you mean {meant[0]}?"
    return f"{name}: {label} has no such property; {instead}"
