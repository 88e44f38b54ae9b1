"""Answers on the web port for an event loop that stands still, from a thread of its own."""

from __future__ import annotations

import logging
import select
import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import suppress

from caughtup.agents.process.pulses import EVENT_LOOP, HEALTHY_SECONDS, TICK_SECONDS, Pulses

log = logging.getLogger(__name__)

#: How long one who asks has for what is asked, and for taking the answer.
_SECONDS = 2.0
#: Enough for a probe's request. It is read, since what is closed with something unread is reset.
_REQUEST_BYTES = 1 << 14
_ANSWER = (
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: {length}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
)


class StandIn:
    """Accepts the connections that the event loop doesn't accept, and answers 503 with the reason.

    Whatever is asked: nothing is told but that the loop stands still. While the loop gets on it
    takes none. ``listeners`` are the loop's.
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
        """Answer nobody any more."""
        self._stopped.set()
        self._thread.join(_SECONDS)
        for listener in self._listeners:
            listener.close()

    def _run(self) -> None:
        while not self._stopped.wait(TICK_SECONDS):
            while not self._stopped.is_set() and self._still() is not None:
                # Who asked has left, the loop was quicker, or the server stops.
                with suppress(OSError, ValueError):
                    readable, _, _ = select.select(self._listeners, [], [], TICK_SECONDS)
                    for listener in readable:
                        self._answer(listener)

    def _still(self) -> float | None:
        """Return for how long the event loop has stood still (s); None if that is not too long."""
        seconds = self._pulses.still_seconds().get(EVENT_LOOP, 0.0)
        return seconds if seconds >= HEALTHY_SECONDS[EVENT_LOOP] else None

    def _answer(self, listener: socket.socket) -> None:
        seconds = self._still()
        if seconds is None:  # it gets on, and takes who comes itself
            return
        connection, _ = listener.accept()
        connection.settimeout(_SECONDS)
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True)
        with connection:
            connection.recv(_REQUEST_BYTES)
            text = f"the {EVENT_LOOP} has stood still for {seconds:.0f} s\n".encode()
            connection.sendall(_ANSWER.format(length=len(text)).encode() + text)
