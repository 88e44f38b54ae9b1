"""Clients that a web port has to bear: half-open, gone, patient, never reading, not speaking HTTP."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

#: How many of a crowd come at once: a client machine's sockets, too, take their time.
_AT_ONCE = 100
#: A connection that was refused or cut comes back after this.
_BACK_SECONDS = 0.2
_CONNECT_SECONDS = 30.0


class Answer(NamedTuple):
    """What one who asked got: a status, 0 for none, and after how many seconds."""

    status: int
    seconds: float
    body: bytes = b""


class Crowd:
    """Connects to a port of this machine, from an address of its own, as often as it is told."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        self._port = port
        self._source = source

    async def ask(self, path: str, seconds: float = 60.0) -> Answer:
        """Ask over a connection of its own, and read the answer to its end."""
        began, status, body = time.monotonic(), 0, b""
        writer = None
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with asyncio.timeout(seconds):
                reader, writer = await self._connect()
                writer.write(_request(path, "Connection: close\r\n"))
                status = int((await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)[1])
                body = await reader.read()
        if writer is not None:
            writer.transport.abort()
        return Answer(status, time.monotonic() - began, body)

    async def ask_all(self, paths: Sequence[str], seconds: float = 60.0) -> list[Answer]:
        """Ask for every path at the same time, and wait for each answer."""
        return await asyncio.gather(*(self.ask(path, seconds) for path in paths))

    async def leave(self, paths: Sequence[str], after_seconds: float = 0.3) -> None:
        """Ask for every path, and break the connection off without an answer."""

        async def one(path: str) -> None:
            with suppress(OSError, TimeoutError):
                _, writer = await self._connect()
                writer.write(_request(path))
                await asyncio.sleep(after_seconds)
                writer.transport.abort()

        await _some_at_once([one(path) for path in paths])

    @asynccontextmanager
    async def half_open(self, count: int) -> AsyncIterator[None]:
        """Keep so many connections with half a header; each that is ended comes back."""
        async with self._kept(count, b"GET /ready HTTP/1.1\r\nX: "):
            yield

    @asynccontextmanager
    async def never_reading(self, count: int, path: str) -> AsyncIterator[None]:
        """Keep so many connections that ask for a path and read nothing."""
        async with self._kept(count, _request(path), reads=False):
            yield

    async def talk(self, said: bytes, seconds: float) -> Counter[bytes]:
        """Say something over one connection after the other; count the answers' first lines."""
        answers: Counter[bytes] = Counter()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with suppress(OSError, TimeoutError):
                reader, writer = await self._connect()
                writer.write(said)
                async with asyncio.timeout(_CONNECT_SECONDS):
                    answers[(await reader.read(1 << 16)).partition(b"\r\n")[0]] += 1
                writer.transport.abort()
        return answers

    @asynccontextmanager
    async def _kept(self, count: int, said: bytes, *, reads: bool = True) -> AsyncIterator[None]:
        first = asyncio.Semaphore(0)

        async def one() -> None:
            came = False
            while True:
                with suppress(OSError, TimeoutError):
                    reader, writer = await self._connect()
                    try:
                        if not reads:
                            assert isinstance(writer.transport, asyncio.ReadTransport)
                            writer.transport.pause_reading()
                        writer.write(said)
                        if not came:
                            first.release()
                        came = True
                        while await reader.read(1 << 16):
                            pass
                    finally:
                        writer.transport.abort()
                await asyncio.sleep(_BACK_SECONDS)

        keepers = [asyncio.create_task(one()) for _ in range(count)]
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                for _ in range(count):
                    await first.acquire()
            yield
        finally:
            for keeper in keepers:
                keeper.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        async with asyncio.timeout(_CONNECT_SECONDS):
            return await asyncio.open_connection(
                "127.0.0.1", self._port, local_addr=(self._source, 0)
            )


def _request(path: str, headers: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n".encode()


async def _some_at_once(coming: Sequence[Coroutine[Any, Any, None]]) -> None:
    room = asyncio.Semaphore(_AT_ONCE)

    async def come(one: Coroutine[Any, Any, None]) -> None:
        async with room:
            await one

    await asyncio.gather(*map(come, coming))
