"""A thread that answers on the web port while the event loop is blocked."""

from __future__ import annotations

import logging
import select
import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import suppress

from caughtup.agents.process.health import EVENT_LOOP, HEALTHY_SECONDS, TICK_SECONDS, Pulses

log = logging.getLogger(__name__)

#: How long a client may take to send its request, and to read the answer.
_SECONDS = 2.0
#: Enough for a probe's request, which is read because closing with unread data resets.
_REQUEST_BYTES = 1 << 14
_ANSWER = (
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: {length}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
)


class StandIn:
    """Accepts connections while the event loop is blocked, and answers 503 with that reason.

    It accepts none while the loop runs. ``listeners`` are the loop's.
    """

    def __init__(
        self, listeners: Sequence[socket.socket], tls: ssl.SSLContext | None, pulses: Pulses
    ) -> None:
        self._listeners = [socket.fromfd(one.fileno(), one.family, one.type) for one in listeners]
        self._tls = tls
        self._pulses = pulses
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stand-in", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and close its copies of the listeners."""
        self._stopped.set()
        self._thread.join(_SECONDS)
        for listener in self._listeners:
            listener.close()

    def _run(self) -> None:
        while not self._stopped.wait(TICK_SECONDS):
            while not self._stopped.is_set() and self._blocked_seconds() is not None:
                # The client left, the loop accepted first, or the server stops.
                with suppress(OSError, ValueError):
                    readable, _, _ = select.select(self._listeners, [], [], TICK_SECONDS)
                    for listener in readable:
                        self._answer(listener)

    def _blocked_seconds(self) -> float | None:
        """Return how long the event loop has been blocked, in seconds, None if not too long."""
        seconds = self._pulses.still_seconds().get(EVENT_LOOP, 0.0)
        return seconds if seconds >= HEALTHY_SECONDS[EVENT_LOOP] else None

    def _answer(self, listener: socket.socket) -> None:
        seconds = self._blocked_seconds()
        if seconds is None:  # it runs again, and accepts by itself
            return
        connection, _ = listener.accept()
        connection.settimeout(_SECONDS)
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True)
        with connection:
            connection.recv(_REQUEST_BYTES)
            text = f"the {EVENT_LOOP} has stood still for {seconds:.0f} s\n".encode()
            connection.sendall(_ANSWER.format(length=len(text)).encode() + text)
