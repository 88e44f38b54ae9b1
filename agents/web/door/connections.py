"""Connections to the web port: limits on their number, their idle time and slow clients.

aiohttp bounds each line of a request, closes idle connections and passes on back-pressure. The rest
is here: a protocol between the connection and aiohttp's own, and a listener, since asyncio's own
server accepts a hundred connections in a turn and reports each only after the TLS handshake.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import cast

from aiohttp import web
from aiohttp.typedefs import Handler

from caughtup.agents.web.door.refusals import (
    CONNECTIONS,
    FILES,
    SLOW_HEADER,
    SLOW_READER,
    TOO_LARGE,
    Refusals,
)

#: The most connections without a complete request, in all and of one address. One more closes the
#: oldest that has sent a part of one, or else the oldest: the request of a client that is far away
#: or busy comes late, but it comes whole.
SILENT, SILENT_OF_ADDRESS = 500, 250
#: The most connections with a request being answered. Others get 503, except for probes.
ANSWERED, ANSWERED_OF_ADDRESS = 200, 150
#: The time for a request's line and headers, from the connection or their first byte.
HEADER_SECONDS = 10.0
#: When a connection without a request is closed: more than a scrape interval.
IDLE_SECONDS = 75.0
#: The time for a client to read what was written, at most a piece of an answer.
WRITE_SECONDS = 15.0
#: The same for another instance, which reads as its own client does, and other instances before.
WRITE_SECONDS_OF_INSTANCES = 300.0
#: The most bytes of requests before an answer; none has a body, pipelining is bounded.
REQUEST_BYTES = 1 << 16

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: on, 0 s
_RETRY_SECONDS = 5
#: The second is not HTTP; aiohttp answers it with 400.
_HEADER_ENDS = (b"\r\n\r\n", b"\n\n")


class Connections:
    """The open connections by address; closes or refuses those beyond the limits."""

    def __init__(self, probes: frozenset[str], refusals: Refusals) -> None:
        """``probes`` are paths that are always answered."""
        self._probes = probes
        self.refusals = refusals
        self._silent: dict[str, _Silent] = {}
        self._answered: Counter[str] = Counter()
        #: aiohttp's protocol factory, set before the listener starts.
        self.server: Callable[[], asyncio.Protocol] | None = None

    def silent(self, connection: WebConnection) -> None:
        """Add a connection without a request; close another if there are too many."""
        own = self._silent.setdefault(connection.address, _Silent())
        own.nothing[connection] = None
        if len(own) <= SILENT_OF_ADDRESS:
            if sum(map(len, self._silent.values())) <= SILENT:
                return
            own = max(self._silent.values(), key=len)
        own.first().cut(CONNECTIONS)

    def partial(self, connection: WebConnection) -> None:
        """Note that a connection has sent a part of a request."""
        own = self._silent.get(connection.address)
        if own is not None and connection in own.nothing:
            del own.nothing[connection]
            own.partial[connection] = None

    def forget(self, connection: WebConnection) -> None:
        """Remove a connection that has a request, or that ended."""
        own = self._silent.get(connection.address)
        if own is not None:
            own.nothing.pop(connection, None)
            own.partial.pop(connection, None)
            if not len(own):
                del self._silent[connection.address]

    def close(self) -> None:
        """Close the connections without a request."""
        for own in list(self._silent.values()):
            for connection in (*own.partial, *own.nothing):
                connection.cut()

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer 503 if too many requests are being answered, except to probes."""
        connection = connection_of(request)
        if connection is None:
            return await handler(request)
        with connection.answering():
            if request.path in self._probes:
                return await handler(request)
            with self._counted(connection.address):
                return await handler(request)

    @contextmanager
    def _counted(self, address: str) -> Iterator[None]:
        if self._answered.total() >= ANSWERED or self._answered[address] >= ANSWERED_OF_ADDRESS:
            refusal = self.refusals.unavailable("connections", _RETRY_SECONDS)
            refusal.force_close()
            raise refusal
        self._answered[address] += 1
        try:
            yield
        finally:
            self._answered[address] -= 1
            if not self._answered[address]:
                del self._answered[address]


class _Silent:
    """An address's connections without a complete request, the oldest first."""

    def __init__(self) -> None:
        #: Those that have sent nothing (since their last request), and those that sent a part.
        self.nothing: dict[WebConnection, None] = {}
        self.partial: dict[WebConnection, None] = {}

    def __len__(self) -> int:
        return len(self.nothing) + len(self.partial)

    def first(self) -> WebConnection:
        """Return the connection to close first."""
        return next(iter(self.partial or self.nothing))


class WebConnection(asyncio.Protocol):
    """Passes everything on to aiohttp's protocol, and resets a client that exceeds a limit."""

    def __init__(self, connections: Connections, address: str, end: Callable[[], object]) -> None:
        """``end`` ends a connection without a transport, as before the TLS handshake is done."""
        self.address = address
        self._connections = connections
        self._end = end
        self._inner: asyncio.Protocol | None = None
        self._transport: asyncio.Transport | None = None
        self._header: asyncio.TimerHandle | None = None
        self._write: asyncio.TimerHandle | None = None
        self._answering = self._ended = False
        self._received = 0
        #: Whether another instance reads the answer.
        self.to_instance = False
        #: The first request's bytes until its header is complete; aiohttp sees no part of one.
        self._held = bytearray()
        connections.silent(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the time limit of the first request's header."""
        self._transport = cast(asyncio.Transport, transport)
        self._header = self._cut_after(HEADER_SECONDS, SLOW_HEADER)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection, and stop its timers."""
        self._ended = True
        self._connections.forget(self)
        for timer in (self._header, self._write):
            if timer is not None:
                timer.cancel()
        if self._inner is not None:
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass on a part of a request, or reset the connection if it is too long."""
        self._received += len(data)
        if self._received > REQUEST_BYTES:
            self.cut(TOO_LARGE)
            return
        if self._header is None and not self._answering:
            self._header = self._cut_after(HEADER_SECONDS, SLOW_HEADER)
        if self._inner is None:
            last = self._held[-3:] + data
            self._held += data
            # aiohttp answers 400 at once to bytes that begin with no method, such as TLS.
            if self._held[:1].isalpha() and not any(end in last for end in _HEADER_ENDS):
                self._connections.partial(self)
                return
            data, self._held = bytes(self._held), bytearray()
            assert self._connections.server is not None
            assert self._transport is not None
            self._inner = self._connections.server()
            self._inner.connection_made(self._transport)
        elif not self._answering:
            self._connections.partial(self)
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass on the end of the input."""
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass on that the client reads too slowly, and start its time limit."""
        seconds = WRITE_SECONDS_OF_INSTANCES if self.to_instance else WRITE_SECONDS
        self._write = self._cut_after(seconds, SLOW_READER)
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the client has caught up."""
        if self._write is not None:
            self._write.cancel()
            self._write = None
        if self._inner is not None:
            self._inner.resume_writing()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Mark the connection as having a complete request within the context."""
        if self._header is not None:
            self._header.cancel()
            self._header = None
        self._received, self._answering = 0, True
        self._connections.forget(self)
        try:
            yield
        finally:
            self._answering = self.to_instance = False
            if not self._ended:
                self._connections.silent(self)

    def cut(self, why: str | None = None) -> None:
        """Reset the connection, so that the client sees that the answer is incomplete.

        ``why`` is the reason under which it is counted.
        """
        self._connections.forget(self)
        if why is not None:
            self._connections.refusals.count(why, self.address)
        if self._transport is None:
            self._end()
            return
        connected = self._transport.get_extra_info("socket")
        with suppress(OSError, AttributeError):  # it is closed already
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()

    def _cut_after(self, seconds: float, why: str) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, self.cut, why)


def connection_of(request: web.Request) -> WebConnection | None:
    """Return the connection that a request came over, None if it is gone."""
    protocol = None if request.transport is None else request.transport.get_protocol()
    return protocol if isinstance(protocol, WebConnection) else None


#: The listen backlog, and the most connections that are accepted in a turn of the event loop.
_BACKLOG, _PER_TURN = 1_024, 16
#: How long accepting pauses when the process has no more file descriptors.
_PAUSE_SECONDS = 1.0


class Listener:
    """Accepts connections on an address, each with a ``WebConnection`` as its protocol."""

    def __init__(self, connections: Connections, tls: ssl.SSLContext | None) -> None:
        self._connections = connections
        self._tls = tls
        self._bound: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        #: The listening sockets.
        self.sockets: list[socket.socket] = []

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError when the port is taken."""
        loop = asyncio.get_running_loop()
        self._bound = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
        for bound in self._bound.sockets:
            listener = socket.fromfd(bound.fileno(), bound.family, bound.type)
            listener.setblocking(False)
            listener.listen(_BACKLOG)
            self.sockets.append(listener)
            loop.add_reader(listener, self._accept, listener)

    def stop(self) -> None:
        """Stop listening, and close the connections without a request."""
        for listener in self.sockets:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        self.sockets.clear()
        if self._bound is not None:
            self._bound.close()
        self._connections.close()
        for task in self._tasks:
            task.cancel()

    def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(_PER_TURN):
            try:
                connected, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no more file descriptors
                self._connections.refusals.count(FILES)
                loop.remove_reader(listener)
                loop.call_later(_PAUSE_SECONDS, self._accept_again, listener)
                return
            task = loop.create_task(self._connect(connected, address[0]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _accept_again(self, listener: socket.socket) -> None:
        if listener in self.sockets:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    async def _connect(self, connected: socket.socket, address: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        connection = WebConnection(self._connections, address, task.cancel)
        try:
            with suppress(OSError):  # the client left, or speaks no TLS
                await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: connection,
                    connected,
                    ssl=self._tls,
                    ssl_handshake_timeout=None if self._tls is None else HEADER_SECONDS,
                )
                return
            self._connections.forget(connection)
        except asyncio.CancelledError:
            self._connections.forget(connection)
            raise
