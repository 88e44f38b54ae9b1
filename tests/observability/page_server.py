"""The page's files and a state that a test writes, served on loopback as the service serves them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.observability.repository import ROOT

STATIC = ROOT / "agents" / "web" / "static"


@dataclass
class PageServer:
    """``state`` is what the page is told; ``push`` makes a change known; ``streams`` allows SSE."""

    state: dict[str, Any]
    streams: bool = True
    port: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def encoded(self) -> str:
        return json.dumps({**self.state, "now_ms": int(time.time() * 1000)})

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/", self._index)
        app.router.add_get("/api/state", self._state)
        app.router.add_get("/api/events", self._events)
        app.router.add_static("/", STATIC)
        self.runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", self.port).start()
        self.port = self.runner.addresses[0][1]

    async def stop(self) -> None:
        self.push()  # wakes the streams up, which then find the listener closed
        if self.runner is not None:
            runner, self.runner = self.runner, None
            await runner.cleanup()

    def push(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()

    async def _index(self, request: web.Request) -> web.FileResponse:
        return web.FileResponse(STATIC / "index.html")

    async def _state(self, request: web.Request) -> web.Response:
        return web.Response(text=self.encoded(), content_type="application/json")

    async def _events(self, request: web.Request) -> web.StreamResponse:
        if not self.streams:
            raise web.HTTPNotFound
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while self.runner is not None:
                changed = self.changed
                await response.write(f"event: state\ndata: {self.encoded()}\n\n".encode())
                await changed.wait()
        return response


@contextlib.asynccontextmanager
async def serving(state: dict[str, Any], *, streams: bool = True) -> AsyncIterator[PageServer]:
    """Serve a state until the context ends."""
    server = PageServer(state, streams)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
