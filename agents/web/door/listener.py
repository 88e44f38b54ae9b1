"""Accepts connections to the web port: a few in a turn, each with its limits from the first moment.

asyncio's own server accepts a hundred in a turn, and tells of a connection once TLS is agreed on:
until then nobody could count it, or end it.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress

from caughtup.agents.web.door.limits import HEADER_SECONDS, Connection, Connections
from caughtup.agents.web.door.refusals import FILES

#: So many wait in the system until they are accepted, and so many are accepted in a turn.
_WAITING, _A_TURN = 1_024, 16
#: Where the system has no more files, they wait for so long.
_PAUSE_SECONDS = 1.0


class Listener:
    """Listens on an address, and gives each connection its protocol."""

    def __init__(self, connections: Connections, tls: ssl.SSLContext | None) -> None:
        self._connections = connections
        self._tls = tls
        self._bound: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        #: Those that are listened on.
        self.sockets: list[socket.socket] = []

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError when the port is taken."""
        loop = asyncio.get_running_loop()
        self._bound = await loop.create_server(asyncio.Protocol, host, port, start_serving=False)
        for bound in self._bound.sockets:
            listener = socket.fromfd(bound.fileno(), bound.family, bound.type)
            listener.setblocking(False)
            listener.listen(_WAITING)
            self.sockets.append(listener)
            loop.add_reader(listener, self._accept, listener)

    def stop(self) -> None:
        """Listen no longer, and end those that have asked nothing."""
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
        for _ in range(_A_TURN):
            try:
                connected, address = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # the system has no more files for them
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
        connection = Connection(self._connections, address, task.cancel)
        try:
            with suppress(OSError):  # it has gone, or speaks no TLS
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
