"""The first words on a connection: is it Kafka, and does it want a login. Over a plain socket.

ApiVersions and SaslHandshake in their oldest formats, which every broker answers before it knows
who asks.
"""

from __future__ import annotations

import re
import socket
import struct
from typing import NamedTuple

_API_VERSIONS, _SASL_HANDSHAKE = 18, 17
_UNSUPPORTED_MECHANISM, _ILLEGAL_SASL_STATE = 33, 34
#: No broker says more of itself here.
_MOST_BYTES = 1 << 20
_MOST_MECHANISMS = 100
#: As RFC 4422 has them.
_MECHANISM = re.compile("[A-Z0-9_-]{1,20}")
_LENGTH = struct.Struct(">i")
_SHORT = struct.Struct(">h")
_HEADER = struct.Struct(">hhih")  # API key, version, correlation id, length of the client id
_HANDSHAKE = struct.Struct(">hi")  # error code, number of mechanisms
_CLIENT = b"caughtup"


class NotKafkaError(Exception):
    """What answers follows another protocol."""


class Greeting(NamedTuple):
    """What a listener said of logins; ``offered``: its mechanisms."""

    wants_login: bool
    takes_mechanism: bool
    offered: tuple[str, ...]


def greet(connection: socket.socket, mechanism: str) -> Greeting:
    """Ask a listener whether it wants a login, and takes a mechanism of SASL.

    Raises NotKafkaError, or OSError when the connection breaks or stays silent.
    """
    _ask(connection, _API_VERSIONS, 0, b"")
    asked = mechanism.encode()
    answer = _ask(connection, _SASL_HANDSHAKE, 1, _SHORT.pack(len(asked)) + asked)
    try:
        code, offered = _decoded(answer)
    except (struct.error, UnicodeDecodeError):
        raise NotKafkaError from None
    return Greeting(code != _ILLEGAL_SASL_STATE, code != _UNSUPPORTED_MECHANISM, offered)


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
