"""The web server on a free port, with a client of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple, Self

import aiohttp

from caughtup.agents.process.health import Health
from caughtup.agents.web.server import WebServer
from caughtup.models.state.cluster import ClusterState
from tests.support.settings import settings_from
from tests.support.states import NOW_MS, cluster_state


class Site:
    """A listening server with its state, and a client of it."""

    def __init__(
        self, state: ClusterState | None = None, health: Health | None = None, **settings: Any
    ) -> None:
        self.state = state or cluster_state()
        self.health = health or Health(ready=True, reader_lag=0)
        self.server = WebServer(
            settings_from({"web_port": 0, **settings}),
            self.state,
            self.health,
            clock=lambda: NOW_MS,
        )
        self.client = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60))

    async def __aenter__(self) -> Self:
        await self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        await self.server.stop()

    def url(self, path: str, scheme: str = "http") -> str:
        return f"{scheme}://127.0.0.1:{self.server.port}{path}"

    def get(self, path: str, **options: Any) -> Any:
        return self.client.get(self.url(path), **options)

    async def status(self, path: str, **options: Any) -> int:
        """Return the status of an answer over a new connection."""
        async with (
            aiohttp.ClientSession(timeout=self.client.timeout) as client,
            client.get(self.url(path), **options) as answer,
        ):
            return answer.status

    @asynccontextmanager
    async def connected(self, source: str = "127.0.0.1") -> AsyncIterator[Connected]:
        """Connect from an address of this machine without sending a request."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.server.port, local_addr=(source, 0)
        )
        try:
            yield Connected(reader, writer)
        finally:
            writer.close()


class Connected(NamedTuple):
    """A connection as raw bytes, for requests that no client library sends."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def ask(self, path: str, *, host: str = "127.0.0.1", version: str = "1.1") -> None:
        """Request a path, without reading the answer."""
        self.writer.write(f"GET {path} HTTP/{version}\r\nHost: {host}\r\n\r\n".encode())
        await self.writer.drain()

    async def head(self) -> bytes:
        """Read an answer's first line and headers."""
        return await self.reader.readuntil(b"\r\n\r\n")

    async def read(self, seconds: float = 20.0) -> bytes:
        """Read to the end of the connection. Raises ConnectionResetError, TimeoutError."""
        async with asyncio.timeout(seconds):
            return await self.reader.read()

    async def ended(self, seconds: float = 20.0) -> bytes:
        """Read until the connection ends in any way, and return the bytes. Raises TimeoutError."""
        received = bytearray()
        async with asyncio.timeout(seconds):
            with suppress(ConnectionError):
                while data := await self.reader.read(1 << 16):
                    received += data
        return bytes(received)
