"""Connections to the brokers of a cluster; a broker that hangs delays no requests to others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import Enum
from types import TracebackType
from typing import Self

from aiokafka.errors import KafkaConnectionError, KafkaError, RequestTimedOutError

from caughtup.agents.kafka.protocol.cluster_answers import ApiVersions, Broker
from caughtup.agents.kafka.protocol.connection import BrokerConnection, bootstrap_addresses
from caughtup.agents.kafka.protocol.requests import Call

#: The number of brokers that are asked at the same time, each one request after another.
MOST_AT_ONCE = 32
#: The number of brokers that are tried for a request that any of them can answer.
_TRIES = 3
#: How many times as long a bulk request may take.
_BULK = 10
#: How long a broker that did not answer in time is not asked again; doubled each time.
_PAUSE_SECONDS, MOST_PAUSE_SECONDS = 5.0, 30.0


class Purpose(Enum):
    """The purpose of a connection; a broker answers a connection's requests one after another."""

    #: Requests that the broker answers by itself, at once.
    OWN = "own"
    #: Requests that the broker forwards to the controller, which may be slow.
    FORWARDED = "forwarded"
    #: Requests with answers so large that they take long.
    BULK = "bulk"
    #: Fetches, for which the broker waits until there are records.
    FETCH = "fetch"


@dataclass(slots=True)
class _PurposeLink:
    """A broker's connection for one purpose, if any, and the earliest time of the next attempt."""

    timeout_seconds: float
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    connection: BrokerConnection | None = None
    address: tuple[str, int] | None = None
    timeouts: int = 0
    not_before: float = 0.0


class BrokerConnections:
    """Connections to brokers, opened when they are needed. Use as an async context manager.

    ``config``: aiokafka's properties. ``timeout_seconds``: for opening a connection, and for each
    answer. ``most_pause_seconds``: how long a broker that did not answer is left alone at most. All
    methods raise KafkaError only.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        timeout_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        most_pause_seconds: float = MOST_PAUSE_SECONDS,
    ) -> None:
        self._servers = str(config["bootstrap_servers"])
        self._config = config
        self.timeout_seconds = timeout_seconds
        self._clock = clock
        self._most_pause_seconds = most_pause_seconds
        self._links: dict[tuple[int, Purpose], _PurposeLink] = {}
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
        """Replace the known brokers; close connections to all others."""
        self._brokers = {broker.id: broker for broker in brokers}
        for key in [key for key in self._links if key[0] not in self._brokers]:
            link = self._links.pop(key)
            if link.connection is not None:
                link.connection.close()

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

    async def connection(self, broker: int, *, purpose: Purpose = Purpose.OWN) -> BrokerConnection:
        """Return the open connection to a broker, or open one."""
        link = self._link(broker, purpose)
        async with link.lock:
            return await self._connect(broker, link)

    async def ask(self, broker: int, call: Call, *, purpose: Purpose = Purpose.OWN) -> bytes:
        """Send a request after the earlier ones of its purpose are answered; return the answer.

        After a time-out, requests to that broker fail at once for 5 s, doubled up to the longest
        pause.
        """
        link = self._link(broker, purpose)
        async with AsyncExitStack() as held:
            await held.enter_async_context(link.lock)
            if purpose is Purpose.OWN:  # the other purposes may take long and must not hold a slot
                await held.enter_async_context(self._slots)
            used = link.connection
            try:
                return await self._ask(broker, link, call, purpose)
            except KafkaConnectionError:
                # A broker closes idle connections, and those whose login has expired.
                if used is None or link.connection is not used:
                    raise
                return await self._ask(broker, link, call, purpose)

    async def _ask(self, broker: int, link: _PurposeLink, call: Call, purpose: Purpose) -> bytes:
        connection = await self._connect(broker, link)
        self.requests += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            answer = await connection.ask(call)
        except RequestTimedOutError:
            if purpose is Purpose.OWN:
                self._record_timeout(link)
            raise
        finally:
            self.in_flight -= 1
        link.timeouts = 0
        return answer

    async def ask_any(
        self, call: Call | Callable[[ApiVersions], Call], *, purpose: Purpose = Purpose.OWN
    ) -> tuple[Call, bytes]:
        """Ask up to three brokers until one answers; return the request and its answer.

        The broker that answered last is asked first, since brokers' views may differ. ``call`` may
        be a function that makes the request from the versions that a broker offers.
        """
        failure: KafkaError = KafkaConnectionError("no broker is known")
        for broker in self._candidates()[:_TRIES]:
            try:
                connection = await self.connection(broker, purpose=purpose)
                used = call if isinstance(call, Call) else call(connection.offered)
                answer = await self.ask(broker, used, purpose=purpose)
            except KafkaError as error:
                if purpose is not Purpose.OWN and isinstance(error, RequestTimedOutError):
                    raise  # the controller or the size may be the reason, not this broker
                failure = error
                continue
            self._preferred = broker
            return used, answer
        raise failure

    async def any_offered(self) -> ApiVersions:
        """Return what the broker offers that ``ask_any`` would ask first."""
        failure: KafkaError = KafkaConnectionError("no broker is known")
        for broker in self._candidates()[:_TRIES]:
            try:
                return (await self.connection(broker)).offered
            except KafkaError as error:
                failure = error
        raise failure

    def all_offered(self) -> list[ApiVersions]:
        """Return what each connected broker offers."""
        return [
            link.connection.offered
            for (_, purpose), link in self._links.items()
            if purpose is Purpose.OWN and link.connection is not None and link.connection.is_open
        ]

    def _candidates(self) -> list[int]:
        """Sort the brokers: those that answer in time first, then unfenced, then the preferred."""
        now = self._clock()

        def rank(broker: int) -> tuple[bool, bool, bool, int]:
            return (
                self._link(broker, Purpose.OWN).not_before > now,
                bool(self._brokers[broker].fenced),
                broker != self._preferred,
                broker,
            )

        return sorted(self._brokers, key=rank)

    def _link(self, broker: int, purpose: Purpose) -> _PurposeLink:
        link = self._links.get((broker, purpose))
        if link is None:
            seconds = self.timeout_seconds * (_BULK if purpose is Purpose.BULK else 1)
            link = self._links[broker, purpose] = _PurposeLink(seconds)
        return link

    async def _connect(self, broker: int, link: _PurposeLink) -> BrokerConnection:
        known = self._brokers.get(broker)
        if known is None:
            raise KafkaConnectionError("not registered")
        address = known.host, known.port
        if link.connection is not None:
            if link.connection.is_open and link.address == address:
                return link.connection
            link.connection.close()
            link.connection = None
        if link.not_before > self._clock():
            raise RequestTimedOutError("did not answer in time; caughtup asks it again later")
        try:
            link.connection = await BrokerConnection.open(
                *address, self._config, link.timeout_seconds
            )
        except RequestTimedOutError:
            self._record_timeout(link)
            raise
        link.address = address
        return link.connection

    def _record_timeout(self, link: _PurposeLink) -> None:
        pause = min(_PAUSE_SECONDS * 2**link.timeouts, self._most_pause_seconds)
        link.timeouts += 1
        link.not_before = self._clock() + pause
