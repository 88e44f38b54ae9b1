"""Tokens as clients need them: one for all of them, another one before it gets old."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import SaslAuthenticationFailed

from caughtup.agents.kafka.tokens.endpoint import fetch_token
from caughtup.agents.kafka.tokens.provider import provided_token
from caughtup.agents.kafka.tokens.token import Token, TokenError
from caughtup.models.security.logins import Bearer, ClientCredentials, Provider, login_of

#: Of a token's time, after which there has to be another one: before librdkafka asks, at 0.8.
_SHARE = 0.75
#: After a failure nobody is asked for so long.
_PAUSE_SECONDS = 2.0


class TokenSource:
    """Keeps a token, and gets another one before it gets old. Threads may share it."""

    def __init__(self, ask: Callable[[], Token], clock: Callable[[], float] = time.time) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = Lock()
        self._token: Token | None = None
        self._due = self._not_before = 0.0
        self._failure: TokenError | None = None

    def token(self) -> Token:
        """Return a token that is good; while one is, nobody waits for the next.

        Raises TokenError.
        """
        now = self._clock()
        kept = self._good(now)
        if kept is not None and (now < self._due or now < self._not_before):
            return kept
        if not self._lock.acquire(blocking=kept is None) and kept is not None:
            return kept
        try:
            return self._renewed()
        finally:
            self._lock.release()

    def failure(self) -> str | None:
        """Return why there is no newer token, None if there is nothing wrong."""
        return None if self._failure is None else str(self._failure)

    def _good(self, now: float) -> Token | None:
        token = self._token
        return token if token is not None and now < token.expires_at else None

    def _renewed(self) -> Token:
        now = self._clock()
        kept = self._good(now)
        if kept is not None and now < self._due:  # another thread was here
            return kept
        if self._failure is None or now >= self._not_before:
            try:
                found = self._ask()
            except TokenError as error:
                self._failure = error
                self._not_before = self._clock() + _PAUSE_SECONDS
            else:
                self._token, self._failure = found, None
                self._due = now + _SHARE * (found.expires_at - now)
                return found
        if kept is not None:
            return kept
        raise self._failure or TokenError("there is no token")


_lock = Lock()
_sources: dict[ClientCredentials | Provider, TokenSource] = {}


def source_of(kafka: Mapping[str, Any]) -> TokenSource:
    """Return where tokens come from by the properties of this moment: a secret may be rotated."""
    login = login_of(kafka)
    assert isinstance(login, Bearer)
    place = login.source
    with _lock:
        if place not in _sources:
            _sources[place] = TokenSource(_asking(place, kafka))
        return _sources[place]


def _asking(place: ClientCredentials | Provider, kafka: Mapping[str, Any]) -> Callable[[], Token]:
    if isinstance(place, ClientCredentials):
        return lambda: fetch_token(place, kafka)
    return lambda: provided_token(place.function, place.config)


class AiokafkaTokens(AbstractTokenProvider):  # type: ignore[misc]
    """Tokens as aiokafka asks for them."""

    def __init__(self, kafka: Mapping[str, Any], extensions: Mapping[str, str]) -> None:
        self._kafka = kafka
        self._extensions = extensions

    async def token(self) -> str:
        """Return a token. Raises SaslAuthenticationFailed, which says why there is none."""
        try:
            return (await asyncio.to_thread(source_of(self._kafka).token)).value
        except TokenError as error:
            raise SaslAuthenticationFailed(str(error)) from None

    def extensions(self) -> dict[str, str]:
        """Return what is sent beside the token."""
        return dict(self._extensions)


def token_callback(
    kafka: Mapping[str, Any], extensions: Mapping[str, str]
) -> Callable[[str], tuple[str, float, str, dict[str, str]]]:
    """Return what librdkafka calls, on a thread of its own, when it needs another token."""

    def provide(_: str) -> tuple[str, float, str, dict[str, str]]:
        token = source_of(kafka).token()
        return token.value, token.expires_at, "", dict(extensions)

    return provide
