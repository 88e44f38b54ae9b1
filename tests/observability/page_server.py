"""The page's files and a state that a test writes, served on loopback as the service serves them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from aiohttp import web

from caughtup.agents.web.page_views import page_handler
from caughtup.agents.web.server import HEADERS
from tests.observability.browser import TEXT, Page
from tests.observability.page_views import view
from tests.observability.repository import ROOT

STATIC = ROOT / "agents" / "web" / "static"


#: True once the page shows that it hears from its server.
LIVE = "document.querySelector('.link.ok') !== null"
PAGES = (
    "/",
    "/groups/{name:.+}",
    "/reassignments",
    "/transactions",
    "/connect",
    "/streams",
    "/health",
)


@dataclass
class PageServer:
    """``state`` is what the page is told; ``push`` makes a change known; ``streams`` allows SSE.

    ``recent`` is what every question for the last hours gets, ``days`` what those for days do, or
    why it can't be read; ``prefix`` is a proxy's.
    """

    state: dict[str, Any]
    streams: bool = True
    recent: dict[str, Any] | None = None
    days: dict[str, Any] | str | None = None
    prefix: str = ""
    port: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    runner: web.AppRunner | None = None
    asked: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.prefix}/"

    def group(self, name: str = "orders") -> str:
        """Return the address of a group's page."""
        return f"{self.url}groups/{quote(name, safe='')}"

    def encoded(self, request: web.Request) -> str:
        self.asked.append(request.query_string)
        return json.dumps(view(self.state, dict(request.query)))

    async def start(self) -> None:
        app = web.Application()
        for path in PAGES:
            app.router.add_get(self.prefix + path, self._index)
        app.router.add_get(f"{self.prefix}/api/view", self._view)
        app.router.add_get(f"{self.prefix}/api/events", self._events)
        app.router.add_get(f"{self.prefix}/api/recent", self._recent)
        app.router.add_get(f"{self.prefix}/api/groups/{{name:.+}}/recent", self._recent)
        app.router.add_get(f"{self.prefix}/api/groups/{{name:.+}}/history", self._history)
        app.router.add_get(f"{self.prefix}/api/groups/{{name:.+}}/cost", self._cost)
        app.router.add_static(f"{self.prefix}/", STATIC)
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

    async def _index(self, request: web.Request) -> web.Response:
        depth = request.rel_url.raw_path.removeprefix(self.prefix).count("/") - 1
        answer = await page_handler((STATIC / "index.html").read_bytes(), depth)(request)
        answer.headers.update(HEADERS)
        return answer

    async def _view(self, request: web.Request) -> web.Response:
        return web.Response(text=self.encoded(request), content_type="application/json")

    async def _recent(self, request: web.Request) -> web.Response:
        told = self.recent or {"now_ms": 0, "at_ms": [], "series": {}, "marks": []}
        return web.json_response(told)

    async def _history(self, request: web.Request) -> web.Response:
        self.asked.append(f"history?{request.query_string}")
        if isinstance(self.days, str):
            return web.json_response({"error": self.days}, status=502)
        return web.json_response(self.days)

    async def _cost(self, request: web.Request) -> web.Response:
        self.asked.append(f"cost?{request.query_string}")
        cost = {"copies": 2, "rebalances": 1, "seconds": 600.0, "estimated": False}
        kafkas = {"copies": 7, "rebalances": 4, "seconds": 2_400.0, "estimated": False}
        return web.json_response({"add": 1, "cost": cost, "kafka_cost": kafkas})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        if not self.streams:
            raise web.HTTPNotFound
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            while self.runner is not None:
                changed = self.changed
                said = self.encoded(request)
                await response.write(f"event: state\ndata: {said}\n\n".encode())
                await changed.wait()
        return response


@contextlib.asynccontextmanager
async def serving(state: dict[str, Any], **more: Any) -> AsyncIterator[PageServer]:
    """Serve a state until the context ends; ``more`` as PageServer has it."""
    server = PageServer(state, **more)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def comes_back(server: PageServer, page: Page) -> None:
    """Start a server again, wait until the page has noticed, and stop it."""
    await server.start()
    try:
        await page.until(LIVE)
        await page.until(f"!{TEXT}.includes('Connection lost')")
    finally:
        await server.stop()
