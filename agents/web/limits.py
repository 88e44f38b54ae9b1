"""Limits on who is connected: how many, for how long without a word, how slowly, how much.

aiohttp bounds each line of a request, closes connections that idle and passes on how far a
reader is behind. What it lacks is here: a protocol between the connection and aiohttp's own.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import cast

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Middleware = Callable[[web.Request, Handler], Awaitable[web.StreamResponse]]

#: Connections that are served. Of those beyond, as many again are told to come back later, and
#: probes among them answered; the rest is cut off unheard.
CONNECTIONS = 200
#: A request's line and headers are to be there so long after the connection or their first byte.
HEADER_SECONDS = 10.0
#: A connection without a request ends after so long: longer than between two scrapes.
IDLE_SECONDS = 75.0
#: What waits for a reader, at most a chunk or the page's state, is to be gone in this time.
WRITE_SECONDS = 30.0
#: No request of ours has a body, and nobody sends requests ahead without bound.
REQUEST_BYTES = 1 << 16

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 s
_LATER = {"Retry-After": "5"}


class Connections:
    """Makes the protocol of each connection, and answers what comes over too many of them."""

    def __init__(self, probes: frozenset[str]) -> None:
        """``probes`` are paths that are always answered."""
        self._probes = probes
        self.open = 0
        #: Makes aiohttp's protocols; there is one before anybody can connect.
        self.server: Callable[[], asyncio.Protocol] | None = None

    def __call__(self) -> Connection:
        """Make the protocol of a new connection."""
        assert self.server is not None
        return Connection(self.server(), self)

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer 503 over a connection that is one too many, unless it is a probe."""
        connection = connection_of(request)
        if connection is None:
            return await handler(request)
        with connection.answering():
            if connection.is_surplus and request.path not in self._probes:
                refusal = web.HTTPServiceUnavailable(text="too many connections\n", headers=_LATER)
                refusal.force_close()
                raise refusal
            return await handler(request)


class Connection(asyncio.Protocol):
    """Passes everything on to aiohttp's protocol, and cuts off who exceeds a limit."""

    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self._inner = inner
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self._header: asyncio.TimerHandle | None = None
        self._write: asyncio.TimerHandle | None = None
        self._answering = False
        self._received = 0
        #: Whether there were too many when it was made.
        self.is_surplus = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or end it when there are far too many."""
        self._transport = cast(asyncio.Transport, transport)
        self._connections.open += 1
        self.is_surplus = self._connections.open > CONNECTIONS
        self._inner.connection_made(transport)
        if self._connections.open > 2 * CONNECTIONS:
            self.cut()
        else:
            self._header = self._cut_after(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._connections.open -= 1
        for timer in (self._header, self._write):
            if timer is not None:
                timer.cancel()
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass on a piece of a request, unless it is too long."""
        self._received += len(data)
        if self._received > REQUEST_BYTES:
            self.cut()
            return
        if self._header is None and not self._answering:
            self._header = self._cut_after(HEADER_SECONDS)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass on that nothing more will come."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass on that the reader is behind, and wait for it only so long."""
        self._write = self._cut_after(WRITE_SECONDS)
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the reader has caught up."""
        if self._write is not None:
            self._write.cancel()
            self._write = None
        self._inner.resume_writing()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Count a request as whole meanwhile, and the next one's time as not yet begun."""
        if self._header is not None:
            self._header.cancel()
            self._header = None
        self._received, self._answering = 0, True
        try:
            yield
        finally:
            self._answering = False

    def cut(self) -> None:
        """End the connection with a reset, so that nobody takes what was sent for all there is."""
        if self._transport is None:
            return
        connected = self._transport.get_extra_info("socket")
        with suppress(OSError):  # it is closed already
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()

    def _cut_after(self, seconds: float) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, self.cut)


def connection_of(request: web.Request) -> Connection | None:
    """Return the connection that a request came over, None if it is gone."""
    protocol = None if request.transport is None else request.transport.get_protocol()
    return protocol if isinstance(protocol, Connection) else None


class Slots:
    """A number of answers that may be under way at once."""

    def __init__(self, what: str, most: int, retry_seconds: int) -> None:
        self._what = what
        self._free = most
        self._headers = {"Retry-After": str(retry_seconds)}

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold a slot while it lasts. Raises HTTPServiceUnavailable when there is none."""
        if not self._free:
            raise web.HTTPServiceUnavailable(text=f"too many {self._what}\n", headers=self._headers)
        self._free -= 1
        try:
            yield
        finally:
            self._free += 1
