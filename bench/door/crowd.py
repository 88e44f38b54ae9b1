"""Clients of a web port: half-open, leaving early, waiting, never reading, not speaking HTTP."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

#: How many clients connect at the same time, so that this machine can keep up.
_AT_ONCE = 100
#: A connection that was refused or closed is opened again after this time.
_BACK_SECONDS = 0.2
_CONNECT_SECONDS = 30.0


class HttpAnswer(NamedTuple):
    """The status of an answer (0: no answer), and the seconds until it."""

    status: int
    seconds: float
    body: bytes = b""


class Crowd:
    """Makes many connections to a local port, from one source address."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        self._port = port
        self._source = source

    async def ask(self, path: str, seconds: float = 60.0) -> HttpAnswer:
        """Send a request over a new connection, and read the whole answer."""
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
        return HttpAnswer(status, time.monotonic() - began, body)

    async def ask_all(self, paths: Sequence[str], seconds: float = 60.0) -> list[HttpAnswer]:
        """Request all paths at the same time, and wait for all answers."""
        return await asyncio.gather(*(self.ask(path, seconds) for path in paths))

    async def leave(self, paths: Sequence[str], after_seconds: float = 0.3) -> None:
        """Request all paths, and close the connections without waiting for answers."""

        async def one(path: str) -> None:
            with suppress(OSError, TimeoutError):
                _, writer = await self._connect()
                writer.write(_request(path))
                await asyncio.sleep(after_seconds)
                writer.transport.abort()

        await _some_at_once(one, paths)

    @asynccontextmanager
    async def half_open(self, count: int) -> AsyncIterator[None]:
        """Keep ``count`` connections with half a header; closed ones are opened again."""
        async with self._kept(count, b"GET /ready HTTP/1.1\r\nX: "):
            yield

    @asynccontextmanager
    async def never_reading(self, count: int, path: str) -> AsyncIterator[None]:
        """Keep ``count`` connections that request a path and read nothing."""
        async with self._kept(count, _request(path), reads=False):
            yield

    async def talk(self, said: bytes, seconds: float) -> Counter[bytes]:
        """Send bytes over one connection after another; count the answers' first lines."""
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


async def _some_at_once(
    come: Callable[[str], Coroutine[object, object, None]], paths: Sequence[str]
) -> None:
    room = asyncio.Semaphore(_AT_ONCE)

    async def one(path: str) -> None:
        async with room:
            await come(path)

    await asyncio.gather(*map(one, paths))
