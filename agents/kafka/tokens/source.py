"""One token for all clients, replaced before it expires."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from threading import Lock

from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import SaslAuthenticationFailed

from caughtup.agents.kafka.tokens.endpoint import fetch_token
from caughtup.agents.kafka.tokens.token import BearerToken, TokenError, provided_token
from caughtup.models.security.kafka_names import KafkaProperties
from caughtup.models.security.logins import Bearer, ClientCredentials, Provider, login_of

#: The share of a token's lifetime after which it is replaced; librdkafka asks at 0.8.
_SHARE = 0.75
#: The time after a failure in which no new attempt is made.
_PAUSE_SECONDS = 2.0


class TokenSource:
    """Keeps a token, and gets another before it expires. Threads may share it.

    ``ask`` gets a token, and may raise TokenError.
    """

    def __init__(
        self, ask: Callable[[], BearerToken], clock: Callable[[], float] = time.time
    ) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = Lock()
        self._token: BearerToken | None = None
        self._renew_at = self._not_before = 0.0
        self._failure: TokenError | None = None

    def token(self) -> BearerToken:
        """Return a valid token. Raises TokenError if there is none.

        While the kept token is valid, only one thread waits for its replacement.
        """
        now = self._clock()
        kept = self._valid(now)
        if kept is not None and (now < self._renew_at or now < self._not_before):
            return kept
        if not self._lock.acquire(blocking=kept is None) and kept is not None:
            return kept
        try:
            return self._renew()
        finally:
            self._lock.release()

    def failure(self) -> str | None:
        """Return why the last attempt failed; None if it succeeded."""
        return None if self._failure is None else str(self._failure)

    def _valid(self, now: float) -> BearerToken | None:
        token = self._token
        return token if token is not None and now < token.expires_at else None

    def _renew(self) -> BearerToken:
        now = self._clock()
        kept = self._valid(now)
        if kept is not None and now < self._renew_at:  # another thread has replaced it
            return kept
        if self._failure is None or now >= self._not_before:
            try:
                found = self._ask()
            except TokenError as error:
                self._failure = error
                self._not_before = self._clock() + _PAUSE_SECONDS
            else:
                self._token, self._failure = found, None
                self._renew_at = now + _SHARE * (found.expires_at - now)
                return found
        if kept is not None:
            return kept
        raise self._failure or TokenError("there is no token")


_lock = Lock()
_sources: dict[ClientCredentials | Provider, TokenSource] = {}


def token_source(kafka: KafkaProperties) -> TokenSource:
    """Return the token source for the current properties: a rotated secret makes a new source."""
    login = login_of(kafka)
    assert isinstance(login, Bearer)
    place = login.source
    with _lock:
        if place not in _sources:
            _sources[place] = TokenSource(_asker(place, kafka))
        return _sources[place]


def _asker(
    place: ClientCredentials | Provider, kafka: KafkaProperties
) -> Callable[[], BearerToken]:
    if isinstance(place, ClientCredentials):
        return lambda: fetch_token(place, kafka)
    return lambda: provided_token(place.function, place.config)


class AiokafkaTokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Gives tokens to aiokafka."""

    def __init__(self, kafka: KafkaProperties, extensions: Mapping[str, str]) -> None:
        self._kafka = kafka
        self._extensions = extensions

    async def token(self) -> str:
        """Return a token. Raises SaslAuthenticationFailed with the reason if there is none."""
        try:
            return (await asyncio.to_thread(token_source(self._kafka).token)).value
        except TokenError as error:
            raise SaslAuthenticationFailed(str(error)) from None

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions to send with the token."""
        return dict(self._extensions)


def token_callback(
    kafka: KafkaProperties, extensions: Mapping[str, str]
) -> Callable[[str], tuple[str, float, str, dict[str, str]]]:
    """Return the function that librdkafka calls, on its own thread, when it needs a token."""

    def provide(_: str) -> tuple[str, float, str, dict[str, str]]:
        token = token_source(kafka).token()
        return token.value, token.expires_at, "", dict(extensions)

    return provide
