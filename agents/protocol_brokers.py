"""The brokers of a cluster, asked side by side: one that hangs costs the others nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from aiokafka.errors import KafkaConnectionError, KafkaError, RequestTimedOutError

from caughtup.agents.protocol_cluster_answers import ApiVersions, Broker
from caughtup.agents.protocol_connection import BrokerConnection, bootstrap_addresses
from caughtup.agents.protocol_requests import Call

#: So many brokers are asked at once, each one thing after the other.
MOST_AT_ONCE = 32
#: Brokers that are tried for what any of them can answer.
_TRIES = 3
#: A broker that gave no answer in time isn't asked again for so long, twice as long each time.
_PAUSE_SECONDS, _MOST_PAUSE_SECONDS = 5.0, 30.0


@dataclass(slots=True)
class _Line:
    """What is known of the way to a broker. A broker answers a connection's requests in turn."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    connection: BrokerConnection | None = None
    address: tuple[str, int] | None = None
    silences: int = 0
    not_before: float = 0.0


class BrokerConnections:
    """Connections to brokers, made when they are needed. Use as an async context manager.

    ``config``: aiokafka's properties. ``timeout_seconds``: for a broker to take a connection, and
    for each answer. Whatever raises here raises KafkaError.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._servers = str(config["bootstrap_servers"])
        self._config = {key: config[key] for key in config if key != "bootstrap_servers"}
        self.timeout_seconds = timeout_seconds
        self._clock = clock
        self._lines: dict[tuple[int, bool], _Line] = {}
        self._slots = asyncio.Semaphore(MOST_AT_ONCE)
        self._brokers: dict[int, Broker] = {}
        self._preferred: int | None = None
        self.requests = 0
        self.in_flight = self.most_in_flight = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def brokers(self) -> Mapping[int, Broker]:
        """The brokers as last learned, by id."""
        return self._brokers

    def learn(self, brokers: Iterable[Broker]) -> None:
        """Take the brokers that are registered now; connections to others are closed."""
        self._brokers = {broker.id: broker for broker in brokers}
        for key in [key for key in self._lines if key[0] not in self._brokers]:
            line = self._lines.pop(key)
            if line.connection is not None:
                line.connection.close()

    def close(self) -> None:
        """Close every connection."""
        self.learn(())

    async def bootstrap(self) -> BrokerConnection:
        """Connect to one of the bootstrap servers; the caller closes the connection."""
        failure: KafkaError = KafkaConnectionError("no bootstrap server")
        for host, port in bootstrap_addresses(self._servers):
            try:
                return await BrokerConnection.open(host, port, self._config, self.timeout_seconds)
            except KafkaError as error:
                failure = error
        raise failure

    async def connection(self, broker: int, *, forwarded: bool = False) -> BrokerConnection:
        """Give the connection to a broker, made anew where there is none.

        ``forwarded``: one for what the broker hands on to the controller, so that what it answers
        by itself needn't wait for that.
        """
        line = self._line(broker, forwarded)
        async with line.lock:
            return await self._connect(broker, line)

    async def ask(self, broker: int, call: Call, *, forwarded: bool = False) -> bytes:
        """Ask a broker, once everything that it was asked before is answered.

        A broker that let the time pass isn't asked again for a while, and fails at once.
        """
        line = self._line(broker, forwarded)
        async with AsyncExitStack() as held:
            await held.enter_async_context(line.lock)
            if not forwarded:  # those wait for the controller, and keep nobody from anything
                await held.enter_async_context(self._slots)
            connection = await self._connect(broker, line)
            self.requests += 1
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            try:
                answer = await connection.ask(call)
            except RequestTimedOutError:
                if not forwarded:
                    self._silent(line)
                raise
            finally:
                self.in_flight -= 1
            line.silences = 0
            return answer

    async def ask_any(
        self, make: Callable[[ApiVersions], Call], *, forwarded: bool = False
    ) -> tuple[Call, bytes]:
        """Ask brokers until one answers, first the one that did last: their views may differ.

        ``make`` gives the request for what a broker offers. Returns it with the answer.
        """
        failure: KafkaError = KafkaConnectionError("no broker is known")
        for broker in self._candidates()[:_TRIES]:
            try:
                connection = await self.connection(broker, forwarded=forwarded)
                call = make(connection.offered)
                answer = await self.ask(broker, call, forwarded=forwarded)
            except KafkaError as error:
                if forwarded and isinstance(error, RequestTimedOutError):
                    raise  # it is the controller that gives no answer
                failure = error
                continue
            self._preferred = broker
            return call, answer
        raise failure

    async def any_offered(self) -> ApiVersions:
        """Tell what the broker that any question goes to first offers."""
        failure: KafkaError = KafkaConnectionError("no broker is known")
        for broker in self._candidates()[:_TRIES]:
            try:
                return (await self.connection(broker)).offered
            except KafkaError as error:
                failure = error
        raise failure

    def all_offered(self) -> list[ApiVersions]:
        """Tell what each broker offers that is connected."""
        return [
            line.connection.offered
            for (_, forwarded), line in sorted(self._lines.items(), key=lambda item: item[0])
            if line.connection is not None and line.connection.is_open and not forwarded
        ]

    def _candidates(self) -> list[int]:
        """Order brokers: the preferred one, those that aren't fenced, those that aren't silent."""
        now = self._clock()

        def rank(broker: int) -> tuple[bool, bool, bool, int]:
            return (
                self._line(broker, False).not_before > now,
                bool(self._brokers[broker].fenced),
                broker != self._preferred,
                broker,
            )

        return sorted(self._brokers, key=rank)

    def _line(self, broker: int, forwarded: bool) -> _Line:
        return self._lines.setdefault((broker, forwarded), _Line())

    async def _connect(self, broker: int, line: _Line) -> BrokerConnection:
        known = self._brokers.get(broker)
        if known is None:
            raise KafkaConnectionError("not registered")
        address = known.host, known.port
        if line.connection is not None:
            if line.connection.is_open and line.address == address:
                return line.connection
            line.connection.close()
            line.connection = None
        if line.not_before > self._clock():
            raise RequestTimedOutError("gave no answer in time, and is not asked for a while")
        try:
            line.connection = await BrokerConnection.open(
                *address, self._config, self.timeout_seconds
            )
        except RequestTimedOutError:
            self._silent(line)
            raise
        line.address = address
        return line.connection

    def _silent(self, line: _Line) -> None:
        pause = min(_PAUSE_SECONDS * 2**line.silences, _MOST_PAUSE_SECONDS)
        line.silences += 1
        line.not_before = self._clock() + pause
