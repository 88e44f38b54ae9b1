"""Ask a listener, over a socket of our own, whether it is Kafka, speaks TLS and wants a login.

It uses ApiVersions and SaslHandshake in their oldest formats, which every broker answers before a
login.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
from contextlib import closing
from typing import NamedTuple

#: The time-out for opening a connection, and for each answer.
STEP_SECONDS = 2.0
_API_VERSIONS, _SASL_HANDSHAKE = 18, 17
_UNSUPPORTED_MECHANISM, _ILLEGAL_SASL_STATE = 33, 34
#: The longest answer that is read; those of brokers are much shorter.
_MOST_BYTES = 1 << 20
_MOST_MECHANISMS = 100
#: The name of a SASL mechanism by RFC 4422.
_MECHANISM = re.compile("[A-Z0-9_-]{1,20}")
_LENGTH = struct.Struct(">i")
_SHORT = struct.Struct(">h")
_HEADER = struct.Struct(">hhih")  # API key, version, correlation id, length of the client id
_HANDSHAKE = struct.Struct(">hi")  # error code, number of mechanisms
_CLIENT = b"caughtup"


class NotKafkaError(Exception):
    """The other side speaks another protocol than Kafka's."""


class ListenerAnswer(NamedTuple):
    """A listener's answer about logins; ``offered``: the SASL mechanisms that it offers."""

    wants_login: bool
    takes_mechanism: bool
    offered: tuple[str, ...]


def ask_listener(connection: socket.socket, mechanism: str) -> ListenerAnswer:
    """Ask a listener whether it wants a login, and whether it takes a SASL mechanism.

    Raises NotKafkaError, or OSError when the connection breaks or no answer comes.
    """
    _ask(connection, _API_VERSIONS, 0, b"")
    mechanism_bytes = mechanism.encode()
    answer = _ask(
        connection, _SASL_HANDSHAKE, 1, _SHORT.pack(len(mechanism_bytes)) + mechanism_bytes
    )
    try:
        code, offered = _decoded(answer)
    except (struct.error, UnicodeDecodeError):
        raise NotKafkaError from None
    return ListenerAnswer(code != _ILLEGAL_SASL_STATE, code != _UNSUPPORTED_MECHANISM, offered)


def connect_to(host: str, port: int) -> socket.socket:
    """Open a TCP connection with time-outs. Raises OSError."""
    connection = socket.create_connection((host, port), STEP_SECONDS)
    connection.settimeout(STEP_SECONDS)
    return connection


def speaks_tls(host: str, port: int) -> bool:
    """Return whether a TLS handshake begins at an address, whatever the certificate."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with closing(connect_to(host, port)) as plain, context.wrap_socket(plain):
            return True
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    except OSError:
        return False


def ask_plain_listener(host: str, port: int) -> ListenerAnswer | None:
    """Return the answer of a Kafka listener without TLS; None if there is no such listener."""
    try:
        with closing(connect_to(host, port)) as plain:
            return ask_listener(plain, "")
    except (OSError, NotKafkaError):
        return None


def _ask(connection: socket.socket, key: int, version: int, body: bytes) -> bytes:
    """Send a request and return its answer without the correlation id."""
    request = _HEADER.pack(key, version, 1, len(_CLIENT)) + _CLIENT + body
    connection.sendall(_LENGTH.pack(len(request)) + request)
    (length,) = _LENGTH.unpack(_received(connection, _LENGTH.size))
    if not _LENGTH.size <= length <= _MOST_BYTES:
        raise NotKafkaError
    answer = _received(connection, length)
    if answer[: _LENGTH.size] != _LENGTH.pack(1):
        raise NotKafkaError
    return answer[_LENGTH.size :]


def _received(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = connection.recv(size - len(found))
        if not part:
            raise ConnectionResetError
        found += part
    return bytes(found)


def _decoded(answer: bytes) -> tuple[int, tuple[str, ...]]:
    code, count = _HANDSHAKE.unpack_from(answer)
    at, offered = _HANDSHAKE.size, []
    for _ in range(max(0, min(count, _MOST_MECHANISMS))):
        (length,) = _SHORT.unpack_from(answer, at)
        at += _SHORT.size
        if length < 0:
            raise NotKafkaError
        name = answer[at : at + length].decode()
        at += length
        if _MECHANISM.fullmatch(name):
            offered.append(name)
    return code, tuple(offered)
