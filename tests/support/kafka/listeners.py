"""Servers in place of a broker: silent, of another protocol, or TLS with any certificate."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import trustme


@contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """Yield the address of a server that calls ``serve`` with each connection, in its own thread."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        over = threading.Event()
        held: list[socket.socket] = []

        def one(connection: socket.socket) -> None:
            with suppress(OSError):
                serve(connection)

        def run() -> None:
            while not over.is_set():
                with suppress(TimeoutError):
                    connection, _ = server.accept()
                    connection.settimeout(10)
                    held.append(connection)
                    threading.Thread(target=one, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}"
        finally:
            over.set()
            thread.join()
            for connection in held:
                connection.close()


def silent(connection: socket.socket) -> None:
    """Accept a connection and never answer."""


def closing(connection: socket.socket) -> None:
    """Read some bytes and close."""
    connection.recv(1)
    connection.close()


def web_server(connection: socket.socket) -> None:
    """Answer like a web server that gets a malformed request."""
    connection.recv(1)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    connection.close()


def before(
    address: str, certificate: trustme.LeafCert, client_authority: trustme.CA | None = None
) -> Callable[[socket.socket], None]:
    """Return a TLS proxy with a certificate in front of a broker, like a load balancer."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    if client_authority is not None:
        client_authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    host, _, port = address.rpartition(":")

    def relay(connection: socket.socket) -> None:
        with (
            context.wrap_socket(connection, server_side=True) as client,
            socket.create_connection((host, int(port))) as broker,
        ):
            back = threading.Thread(target=_copy, args=(broker, client), daemon=True)
            back.start()
            _copy(client, broker)

    return relay


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
