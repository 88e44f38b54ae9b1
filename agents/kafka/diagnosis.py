"""Find out why a cluster cannot be connected to: try each address step by step.

Client libraries report that a connection broke, and seldom why: a broker that expects TLS or a
login closes it without an answer. So after a library's connection failed, we open our own and
check the host name, the port, TLS and the certificate, whether it is Kafka, and the login.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple

from caughtup.agents.kafka.protocol.connection import bootstrap_addresses
from caughtup.agents.kafka.protocol.listeners import (
    STEP_SECONDS,
    NotKafkaError,
    ask_listener,
    ask_plain_listener,
    connect_to,
    speaks_tls,
)
from caughtup.agents.kafka.tls import ssl_context, without_unopenable_keystore
from caughtup.agents.settings import Settings
from caughtup.models.security.kafka_names import KafkaProperties
from caughtup.models.security.logins import protocol_of

#: How long to wait for a broker that refuses connections (it may restart), or that does not answer
#: (it may be busy), before it is reported.
_AWAY_SECONDS, _SILENT_SECONDS = 1.5, 4.0
#: The number of addresses that are tried at the same time.
_MOST_AT_ONCE = 16

#: What is wrong with a certificate, by OpenSSL's verify code.
_CERTIFICATE = {
    9: "is not valid yet: compare the clocks of this machine and of the machine that issued it",
    10: "has expired: give the broker a new one",
    23: "is revoked: give the broker a new one",
    62: "is for another name: connect by a name in the certificate, or have one issued for this name",
    64: "is for another address: connect by a name in the certificate, or have one issued for this address",
}
_CHECK_CERTIFICATE = "check ssl.certificate.* or ssl.keystore.*, and what the broker trusts"
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21, 24, 27})


class Trouble(NamedTuple):
    """What is wrong at an address, and what to do.

    ``passes_within``: the seconds in which it may end by itself, as when a broker restarts.
    """

    line: str
    passes_within: float = 0.0


def diagnose(settings: Settings) -> Trouble | None:
    """Return what is wrong with the bootstrap servers; None if one of them seems to work.

    Credentials are not tried.
    """
    addresses = sorted(bootstrap_addresses(settings.bootstrap_servers))
    troubles = troubles_at(addresses, settings.kafka)
    if None in troubles:
        return None
    found = [trouble for trouble in troubles if trouble is not None]
    lines = dict.fromkeys(trouble.line for trouble in found)
    return Trouble("; ".join(lines), max(trouble.passes_within for trouble in found))


def troubles_at(
    addresses: Sequence[tuple[str, int]], kafka: KafkaProperties
) -> list[Trouble | None]:
    """Return what is wrong at each address, in the given order; the addresses are tried at once."""
    with ThreadPoolExecutor(_MOST_AT_ONCE) as threads:
        return list(
            threads.map(lambda address: trouble_at(address[0], address[1], kafka), addresses)
        )


def trouble_at(host: str, port: int, kafka: KafkaProperties) -> Trouble | None:
    """Return what keeps a client from using an address; None if nothing is found."""
    at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    protocol = protocol_of(kafka)
    try:
        with closing(connect_to(host, port)) as plain:
            if not protocol.endswith("SSL"):
                return _without_tls(plain, at, host, port, kafka)
            return _with_tls(plain, at, host, port, kafka)
    except socket.gaierror as error:
        return _cannot_reach(at, _unresolved(error))
    except ConnectionRefusedError:
        return _cannot_reach(
            at,
            "nothing listens there (connection refused): check bootstrap_servers, and whether the "
            "broker runs",
        )
    except TimeoutError:
        return _cannot_reach(
            at,
            f"no answer to connecting within {STEP_SECONDS:g} s: check bootstrap_servers, and "
            "firewalls on the way",
        )
    except ValueError:  # the host's name cannot be encoded
        return _cannot_reach(at, "this is not a host's name: check bootstrap_servers")
    except OSError as error:
        return _cannot_reach(at, f"{error.strerror or 'the connection broke'}: check the network")


def _cannot_reach(at: str, why: str) -> Trouble:
    return Trouble(f"cannot reach Kafka at {at}: {why}", _AWAY_SECONDS)


def _unresolved(error: socket.gaierror) -> str:
    if error.errno == socket.EAI_AGAIN:
        return "the name service does not answer: check the network, and bootstrap_servers"
    return "no host has this name: check bootstrap_servers"


def _without_tls(
    plain: socket.socket, at: str, host: str, port: int, kafka: KafkaProperties
) -> Trouble | None:
    protocol = protocol_of(kafka)
    try:
        return _asked(plain, at, kafka)
    except TimeoutError:
        return _silent(at)
    except (OSError, NotKafkaError) as error:
        if speaks_tls(host, port):
            login = protocol.startswith("SASL")
            return Trouble(
                f"{at} speaks TLS, and security.protocol is {protocol}: set it to "
                f"{'SASL_SSL' if login else 'SSL, or with a login SASL_SSL,'} under [kafka]"
            )
        return _no_kafka(at, error)


def _with_tls(
    plain: socket.socket, at: str, host: str, port: int, kafka: KafkaProperties
) -> Trouble | None:
    agreed = False
    try:
        with ssl_context(without_unopenable_keystore(kafka)).wrap_socket(
            plain, server_hostname=host
        ) as secured:
            agreed = True
            return _asked(secured, at, kafka)
    except TimeoutError:
        return _silent(at)
    except ssl.SSLCertVerificationError as error:
        return Trouble(f"the certificate of {at} {_refused_certificate(error, kafka)}")
    except (OSError, NotKafkaError) as error:
        if (answer := ask_plain_listener(host, port)) is not None:
            without = "SASL_PLAINTEXT" if answer.wants_login else "PLAINTEXT"
            return Trouble(
                f"{at} does not speak TLS, and security.protocol is {protocol_of(kafka)}: connect to "
                f"its listener with TLS, or set it to {without} under [kafka]"
            )
        if isinstance(error, ssl.SSLError) and (line := _refused_by_broker(at, error, kafka)):
            return Trouble(line)
        # In TLS 1.3 a broker refuses our certificate after the handshake; its alert is often lost.
        if agreed and isinstance(error, OSError) and _has_certificate(kafka):
            return Trouble(
                f"{at} closes the connection once it has our certificate: {_CHECK_CERTIFICATE}",
                _AWAY_SECONDS,
            )
        return _no_kafka(at, error)


def _silent(at: str) -> Trouble:
    return Trouble(
        f"cannot reach Kafka at {at}: it accepts connections but does not answer within {STEP_SECONDS:g} s: the broker hangs "
        "or is starting, or it is not a broker; look at its log",
        _SILENT_SECONDS,
    )


def _no_kafka(at: str, error: Exception) -> Trouble:
    if isinstance(error, NotKafkaError):
        return Trouble(f"what answers at {at} is not Kafka: check bootstrap_servers")
    return Trouble(
        f"cannot reach Kafka at {at}: it closes connections without an answer: check bootstrap_servers and "
        "security.protocol under [kafka], and look at the broker's log",
        _AWAY_SECONDS,
    )


def _refused_certificate(error: ssl.SSLCertVerificationError, kafka: KafkaProperties) -> str:
    if error.verify_code in _CERTIFICATE:
        return _CERTIFICATE[error.verify_code]
    if error.verify_code in _UNKNOWN_AUTHORITY:
        known = kafka.get("ssl.ca.location") or ("ssl.ca.pem" if "ssl.ca.pem" in kafka else None)
        where = "this machine's authorities" if known is None else known
        return (
            f"is signed by an authority that is not in {where}: name the file of its authority in "
            "ssl.ca.location under [kafka]"
        )
    return f"cannot be verified (code {error.verify_code} of OpenSSL): check ssl.* under [kafka]"


def _refused_by_broker(at: str, error: ssl.SSLError, kafka: KafkaProperties) -> str | None:
    """Explain the alert with which a broker ended the handshake; None if it is unknown."""
    reason = error.reason or ""
    if "PROTOCOL_VERSION" in reason or "UNSUPPORTED_PROTOCOL" in reason:
        return f"{at} and this machine have no version of TLS in common: check ssl.enabled.protocols there"
    if "HANDSHAKE_FAILURE" in reason or "NO_SHARED_CIPHER" in reason:
        return f"{at} refuses to speak TLS as it is set here: check ssl.* under [kafka], cipher suites above all"
    if "ALERT" in reason and without_unopenable_keystore(kafka) is kafka:
        if _has_certificate(kafka):
            return f"{at} refuses our certificate: {_CHECK_CERTIFICATE}"
        return (
            f"{at} requires a client certificate: set ssl.certificate.location and "
            "ssl.key.location under [kafka]"
        )
    return None


def _has_certificate(kafka: KafkaProperties) -> bool:
    return any(name.startswith(("ssl.certificate.", "ssl.keystore.")) for name in kafka)


def _asked(connection: socket.socket, at: str, kafka: KafkaProperties) -> Trouble | None:
    """Check that Kafka answers and that the login's mechanism suits; None if nothing is wrong."""
    protocol = protocol_of(kafka)
    login = protocol.startswith("SASL")
    mechanism = str(kafka.get("sasl.mechanism", kafka.get("sasl.mechanisms", ""))) if login else ""
    answer = ask_listener(connection, mechanism)
    names = ", ".join(answer.offered) or "none"
    secured = "SSL" if protocol.endswith("SSL") else "PLAINTEXT"
    if not login and answer.wants_login:
        return Trouble(
            f"{at} requires a login (it offers {names}), and security.protocol is {protocol}: set it "
            f"to SASL_{secured}, and sasl.mechanism, sasl.username and sasl.password, under [kafka]"
        )
    if login and not answer.wants_login:
        return Trouble(
            f"{at} does not use SASL, and security.protocol is {protocol}: set it to {secured} under "
            "[kafka], or connect to its listener with SASL"
        )
    if login and not answer.takes_mechanism:
        return Trouble(
            f"{at} does not accept sasl.mechanism {mechanism}: set one that it offers: {names}"
        )
    return None
