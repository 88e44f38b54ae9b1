"""Decides which client can honour which security property; what one can't is refused by name.

An operator writes librdkafka's names once, and several clients connect with them. A property that
one of them doesn't know would leave that one without it, without a word: so it is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from enum import Enum
from typing import NamedTuple

from caughtup.models.errors import CaughtupError
from caughtup.models.security.kafka_names import JAVA, LIBRDKAFKA, is_security, names, spelling

#: Mechanisms of a user name and a password, which every client has.
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_USE_PASSWORDS = "use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 with sasl.username and sasl.password"
_USE_PEM = "use ssl.certificate.location and ssl.key.location (openssl pkcs12 makes PEM of PKCS#12)"
_USE_AUTHORITY = "use ssl.ca.location or ssl.ca.pem"
#: What every client gets, each in its own form.
_EVERYBODY = names(
    """
    security.protocol sasl.mechanism sasl.mechanisms sasl.username sasl.password
    ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem
    ssl.key.location ssl.key.pem ssl.key.password
    ssl.endpoint.identification.algorithm enable.ssl.certificate.verification
    """
)
#: Two names of one thing: of both set, each client would take one by rules of its own.
_EXCLUSIVE = (
    ("sasl.mechanism", "sasl.mechanisms"),
    ("ssl.certificate.location", "ssl.certificate.pem"),
    ("ssl.key.location", "ssl.key.pem"),
)


class _Rules(NamedTuple):
    label: str
    honoured: frozenset[str]
    #: By prefix, the first that fits: what to do instead.
    instead: Mapping[str, str]


class Client(Enum):
    """Who connects to Kafka: each with a form of its own for the same properties."""

    LIBRDKAFKA = _Rules(
        "librdkafka",
        LIBRDKAFKA,
        {
            "ssl.truststore.": _USE_AUTHORITY,
            "ssl.keystore.": _USE_PEM,
            "sasl.jaas.config": _USE_PASSWORDS,
            "": "see docs/operating.md for the list",
        },
    )
    #: Faust connects with it, and so does agents/kafka/protocol/connection.py.
    AIOKAFKA = _Rules(
        "aiokafka, which the service uses as well,",
        _EVERYBODY | {"ssl.cipher.suites", "ssl.crl.location"},
        {
            "ssl.keystore.": _USE_PEM,
            "ssl.ca.": _USE_AUTHORITY,
            "ssl.": "set it in openssl.cnf, for the whole process",
            "": _USE_PASSWORDS,
        },
    )
    SPARK = _Rules(
        "Spark, which uses Kafka's Java client,",
        _EVERYBODY | JAVA,
        {
            "ssl.ca.": _USE_AUTHORITY,
            "ssl.": "set Java's own, such as jdk.tls.namedGroups, in Spark's extraJavaOptions",
            "": "use Java's own sasl.jaas.config",
        },
    )


#: Those of ``caughtup run`` and of the commands that do a part of what it does.
SERVICE = (Client.LIBRDKAFKA, Client.AIOKAFKA)


class Login(NamedTuple):
    """How a client says who it is."""

    mechanism: str
    username: str
    password: str


def check_properties(properties: Mapping[str, object], clients: Iterable[Client]) -> None:
    """Refuse what one of the clients can't honour.

    Raises CaughtupError ``bad_kafka_property``, whose message begins with the property.
    """
    for problem in problems(properties, clients):
        raise _bad(problem)


def problems(properties: Mapping[str, object], clients: Iterable[Client]) -> Iterator[str]:
    """Yield a line for each thing that one of the clients can't honour, beginning with its name."""
    told = set[str]()
    for problem in _problems(properties, clients):
        name = problem.partition(":")[0]
        if name not in told:
            told.add(name)
            yield problem


def _problems(properties: Mapping[str, object], clients: Iterable[Client]) -> Iterator[str]:
    for client in clients:
        given = properties
        if client is Client.SPARK:
            given = {spelling(name): value for name, value in properties.items()}
            yield from _complaints(_check_for_java, given)
        for name in sorted(given):
            if is_security(name) and name not in client.value.honoured:
                yield _refusal(client, name)
        # librdkafka has mechanisms of its own, and so has Java where none is set here.
        if client is Client.AIOKAFKA or (client is Client.SPARK and _logs_in_by_name(given)):
            yield from _complaints(login_of, given)
    for one, other in _EXCLUSIVE:
        if one in properties and other in properties and properties[one] != properties[other]:
            yield f"{one}: {other} is set as well; leave one of them out"
    yield from _complaints(protocol_of, properties)
    yield from _complaints(verifies, properties)


def _complaints(
    check: Callable[[Mapping[str, object]], object], properties: Mapping[str, object]
) -> Iterator[str]:
    try:
        check(properties)
    except CaughtupError as error:
        yield error.message


def protocol_of(properties: Mapping[str, object]) -> str:
    """Return security.protocol in upper case. Raises CaughtupError ``bad_kafka_property``."""
    protocol = str(properties.get("security.protocol", "PLAINTEXT")).upper()
    if protocol not in ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        raise _bad(f"security.protocol: {protocol} is not a Kafka protocol")
    return protocol


def login_of(properties: Mapping[str, object]) -> Login | None:
    """Return user name and password, None where the protocol takes none.

    Raises CaughtupError ``bad_kafka_property`` where something of it is missing or unsupported.
    """
    if not protocol_of(properties).startswith("SASL"):
        return None
    mechanism = properties.get("sasl.mechanism", properties.get("sasl.mechanisms"))
    if mechanism is None:  # each client has a default of its own
        raise _bad(f"sasl.mechanism: it is not set; {_USE_PASSWORDS}")
    if mechanism not in PASSWORD_MECHANISMS:
        raise _bad(f"sasl.mechanism: {mechanism} is not supported; {_USE_PASSWORDS}")
    for name in ("sasl.username", "sasl.password"):
        if not properties.get(name):
            raise _bad(f"{name}: it is not set, and {mechanism} needs it")
    return Login(str(mechanism), str(properties["sasl.username"]), str(properties["sasl.password"]))


def verifies(properties: Mapping[str, object]) -> bool:
    """Return whether a broker's certificate is verified: everywhere, or by nobody.

    Raises CaughtupError ``bad_kafka_property`` for what librdkafka doesn't take for a boolean.
    """
    name = "enable.ssl.certificate.verification"
    text = str(properties.get(name, True)).lower()
    if text not in ("true", "t", "1", "false", "f", "0"):
        raise _bad(f"{name}: it is neither true nor false")
    return text in ("true", "t", "1")


def verifies_names(properties: Mapping[str, object]) -> bool:
    """Return whether a broker's certificate has to be of the name that was connected to."""
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https")
    return str(algorithm).lower() not in ("none", "")


def exposures(properties: Mapping[str, object]) -> Iterator[str]:
    """Yield in a line each what is not safe although it is meant to be."""
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


def _logs_in_by_name(java: Mapping[str, object]) -> bool:
    """Return whether user and password are ours to pass on: Java has ways of its own as well."""
    return "sasl.username" in java and "sasl.jaas.config" not in java


def _check_for_java(properties: Mapping[str, object]) -> None:
    if not verifies(properties):
        raise _bad(
            "enable.ssl.certificate.verification: Spark, which uses Kafka's Java client, always "
            f"verifies; {_USE_AUTHORITY}"
        )
    suites = str(properties.get("ssl.cipher.suites", "TLS_")).split(",")
    if not all(suite.strip().startswith(("TLS_", "SSL_")) for suite in suites):
        raise _bad(
            "ssl.cipher.suites: Spark, which uses Kafka's Java client, has other names for them; "
            "use those, such as TLS_AES_256_GCM_SHA384, for its jobs"
        )


def _refusal(client: Client, name: str) -> str:
    label, honoured, by_prefix = client.value
    prefix, instead = next(given for given in by_prefix.items() if name.startswith(given[0]))
    if name in LIBRDKAFKA:
        return f"{name}: {label} cannot honour it; {instead}"
    meant = get_close_matches(name, sorted(honoured), 1, 0.8)
    if meant and not (prefix and client is Client.LIBRDKAFKA):
        instead = f"did you mean {meant[0]}?"
    return f"{name}: {label} has no such property; {instead}"


def _bad(message: str) -> CaughtupError:
    return CaughtupError("bad_kafka_property", message)
