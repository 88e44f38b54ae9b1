"""A connection to one broker: sends the bytes of a request, returns the bytes of its answer.

Only this file uses aiokafka's internals, and only few: aiokafka's connection opens the socket, does
TLS and SASL and matches answers to requests. Requests and answers are our own (requests.py,
answers.py), since aiokafka knows few of them, and would decode large answers on the event loop.
tests/agents/kafka/protocol/test_client.py fails when an upgrade changes these internals.
"""

from __future__ import annotations

import asyncio
import math
import os
import struct
import time
from collections.abc import Awaitable, Mapping
from io import BytesIO
from typing import Any, NamedTuple, Self

from aiokafka.conn import AIOKafkaConnection, CloseReason, collect_hosts
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    RequestTimedOutError,
    SaslAuthenticationFailed,
    for_code,
)
from aiokafka.protocol.admin import SaslAuthenticateRequest

from caughtup.agents.kafka.protocol.cluster_answers import ApiVersions, decode_api_versions
from caughtup.agents.kafka.protocol.decoding import choose_version
from caughtup.agents.kafka.protocol.requests import Call, Key, api_versions_call
from caughtup.models.security.logins import TOKEN_MECHANISM

_HEADER = struct.Struct(">hhi")  # API key, version, correlation id
_LENGTH = struct.Struct(">h")
_CORRELATION = struct.Struct(">i")
_NO_TAGS = b"\0"
#: The share of a login's lifetime after which a new connection is opened.
_LOGIN_SHARE = 0.85


class _EncodedHeader(NamedTuple):
    raw: bytes

    def encode(self) -> bytes:
        return self.raw


class _DecodedHeader(NamedTuple):
    correlation_id: int


class _AnswerBytes:
    """The type into which aiokafka decodes an answer: its bytes, unchanged."""

    @staticmethod
    def decode(answer: BytesIO) -> bytes:
        return answer.read()


class EncodedRequest:
    """A request in the form that aiokafka's connection takes, encoded already."""

    RESPONSE_TYPE = _AnswerBytes

    def __init__(self, call: Call) -> None:
        self._call = call

    def __repr__(self) -> str:
        return f"{self._call.key.request} v{self._call.version}, {len(self._call.body)} bytes"

    def prepare(self, versions: Mapping[int, tuple[int, int]]) -> Self:
        """Return the request itself: its version is chosen already."""
        del versions
        return self

    def build_request_header(self, correlation_id: int, client_id: str) -> _EncodedHeader:
        """Return the header that precedes the request."""
        name = client_id.encode()
        fixed = _HEADER.pack(self._call.key, self._call.version, correlation_id)
        tags = _NO_TAGS if self._call.flexible else b""
        return _EncodedHeader(fixed + _LENGTH.pack(len(name)) + name + tags)

    def encode(self) -> bytes:
        """Return the request without its header."""
        return self._call.body

    def parse_response_header(self, answer: BytesIO) -> _DecodedHeader:
        """Read the header of an answer; its tagged fields are empty for our requests."""
        (correlation_id,) = _CORRELATION.unpack(answer.read(_CORRELATION.size))
        if self._call.has_answer_tags:
            answer.read(len(_NO_TAGS))
        return _DecodedHeader(correlation_id)


class _LoggedInConnection(AIOKafkaConnection):  # type: ignore[misc]
    """A connection that knows when its login expires: the broker closes it after that.

    ``renew_at``: a time before that, in monotonic seconds; infinite if the login does not expire.
    """

    renew_at = math.inf

    def send(self, request: Any, expect_response: bool = True) -> Any:
        """Send a request; for a login, also read its lifetime from the answer."""
        answering = super().send(request, expect_response)
        if isinstance(request, SaslAuthenticateRequest):
            return self._with_lifetime(answering)
        return answering

    async def _with_lifetime(self, answering: Awaitable[Any]) -> Any:
        answer = await answering
        # A broker that refuses a token sends the reason, and waits for another message.
        if self._sasl_mechanism == TOKEN_MECHANISM and answer.sasl_auth_bytes:
            raise SaslAuthenticationFailed("the broker refuses the token")
        lifetime_ms = getattr(answer, "session_lifetime_ms", 0)  # since version 1
        if lifetime_ms > 0:
            self.renew_at = time.monotonic() + _LOGIN_SHARE * lifetime_ms / 1000
        return answer


class BrokerConnection:
    """A connection to a broker, with the requests and features that the broker offers."""

    def __init__(self, connection: _LoggedInConnection, timeout_seconds: float) -> None:
        self._connection = connection
        self._timeout_seconds = timeout_seconds
        self.offered = ApiVersions({}, {}, {})

    @classmethod
    async def open(
        cls, host: str, port: int, config: Mapping[str, object], timeout_seconds: float
    ) -> Self:
        """Connect, log in and ask for the offered versions, all within ``timeout_seconds``.

        ``config`` is read now, so that rotated passwords count. Raises KafkaError:
        RequestTimedOutError when it takes too long.
        """
        given = {key: config[key] for key in config if key != "bootstrap_servers"}
        try:
            async with asyncio.timeout(timeout_seconds):
                opened = _LoggedInConnection(
                    host, port, request_timeout_ms=int(timeout_seconds * 1000), **given
                )
                await opened.connect()
                connection = cls(opened, timeout_seconds)
                connection.offered = decode_api_versions(await connection.ask(api_versions_call()))
        except TimeoutError:
            raise RequestTimedOutError(f"no answer within {timeout_seconds:g} s") from None
        except OSError as error:
            raise KafkaConnectionError(_reason(error)) from None
        except (OverflowError, ValueError) as error:  # advertised.listeners may hold anything
            raise KafkaConnectionError(f"{host!r:.80}:{port} is not an address: {error}") from None
        return connection

    @property
    def is_open(self) -> bool:
        """Whether it is connected and its login has not expired; nothing is sent."""
        return bool(self._connection.connected()) and time.monotonic() < self._connection.renew_at

    async def ask(self, call: Call) -> bytes:
        """Send a request and return the answer without its header. Raises KafkaError.

        A request that the broker does not offer is not sent: UnsupportedVersionError is raised, since
        the broker would only close the connection. After another failure the connection is closed: a
        late answer would be taken for the next one.
        """
        if call.key is not Key.API_VERSIONS:
            choose_version(self.offered, call.key, (call.version,))
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return bytes(await self._connection.send(EncodedRequest(call)))
        except TimeoutError:
            self.close()
            raise RequestTimedOutError(f"no answer within {self._timeout_seconds:g} s") from None
        except OSError as error:
            self.close()
            raise KafkaConnectionError(_reason(error)) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection at once; a second call does nothing."""
        self._connection.close(reason=CloseReason.SHUTDOWN)


def bootstrap_addresses(servers: str) -> list[tuple[str, int]]:
    """Return the hosts and ports in ``bootstrap_servers``, in random order."""
    return [(host, port) for host, port, _ in collect_hosts(servers)]


def _reason(error: OSError) -> str:
    """Return the operating system's message: asyncio's only repeats the address."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)
    return error.strerror or str(error)


def raise_for(code: int, message: str | None = None) -> None:
    """Raise the KafkaError for an error code, unless the code is 0."""
    if code:
        kind: type[KafkaError] = for_code(code)
        raise kind(message or kind.description)
