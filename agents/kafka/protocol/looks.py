"""Looks at an address beside the one that failed: a connection, with TLS or without."""

from __future__ import annotations

import socket
import ssl
from contextlib import closing

from caughtup.agents.kafka.protocol.greeting import Greeting, NotKafkaError, greet

#: For an address to take a connection, and for each answer.
STEP_SECONDS = 2.0


def connected(host: str, port: int) -> socket.socket:
    """Connect. Raises OSError."""
    connection = socket.create_connection((host, port), STEP_SECONDS)
    connection.settimeout(STEP_SECONDS)
    return connection


def speaks_tls(host: str, port: int) -> bool:
    """Return whether a TLS handshake begins there, whatever the certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with closing(connected(host, port)) as plain, context.wrap_socket(plain):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        return False


def plain_greeting(host: str, port: int) -> Greeting | None:
    """Return what Kafka says there without TLS; None if nothing does."""
    try:
        with closing(connected(host, port)) as plain:
            return greet(plain, "")
    except (OSError, NotKafkaError):
        return None
