"""The web side: the page, its state, ``/metrics``, ``/ready``, ``/healthz``. Reads the state only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from importlib.resources import files
from pathlib import PurePath

import msgspec
from aiohttp import web
from mode import Service
from prometheus_client.exposition import choose_encoder, gzip_accepted

from caughtup.agents.clock import now_ms
from caughtup.agents.garbage import Settling
from caughtup.agents.group_labels import GroupLabels
from caughtup.agents.health import Health
from caughtup.agents.metrics import exposition
from caughtup.agents.page_state import page_steps
from caughtup.agents.settings import Settings
from caughtup.agents.streaming import done_in_turns, gzipped, in_turns
from caughtup.models.state import ClusterState

log = logging.getLogger(__name__)

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_PUSH_SECONDS = 1.0
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class WebServer(Service):
    """Serves the page and the metrics on ``web_host:web_port``."""

    logger = logging.getLogger("mode.caughtup")  # its own comings and goings

    def __init__(
        self,
        settings: Settings,
        state: ClusterState,
        health: Health,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        super().__init__()
        self._settings = settings
        self._state = state
        self._health = health
        self._clock = clock
        self._labels = GroupLabels()
        self._settling = Settling()
        self._runner: web.AppRunner | None = None
        #: The port that is really listened on, which matters where 0 was asked for.
        self.port = settings.web_port

    async def on_start(self) -> None:
        """Listen. Raises OSError when the port is taken."""
        app = web.Application()
        for name, body, kind in static_files():
            path = "/" if name == "index.html" else f"/{name}"
            app.router.add_get(path, _serve(body, kind))
        app.router.add_get("/api/state", self._state_json)
        app.router.add_get("/api/events", self._events)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_get("/ready", self._ready)
        app.router.add_get("/healthz", self._healthz)
        app.on_response_prepare.append(_add_headers)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._settings.web_host, self._settings.web_port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        log.info("the page: http://%s:%d/", self._settings.web_host, self.port)

    async def on_stop(self) -> None:
        """Close the listener and what is connected to it."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _encoded(self) -> bytes:
        steps = page_steps(self._state, self._health, self._clock())
        return msgspec.json.encode(await done_in_turns(steps))

    async def _state_json(self, request: web.Request) -> web.Response:
        return web.Response(body=await self._encoded(), content_type="application/json")

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Push the state as server-sent events, at most once a second."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            while not self.should_stop:
                await response.write(b"event: state\ndata: " + await self._encoded() + b"\n\n")
                await asyncio.sleep(_PUSH_SECONDS)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the reader went away, or the server stops
        return response

    async def _metrics(self, request: web.Request) -> web.StreamResponse:
        """Write the metrics as they are made, letting others have their turn in between."""
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
        pieces = exposition(
            self._state,
            self._health,
            encode,
            self._labels,
            compatible=self._settings.compat_metrics,
        )
        chunks = in_turns(pieces)
        if gzip_accepted(request.headers.get("Accept-Encoding", "")):
            headers["Content-Encoding"] = "gzip"
            chunks = gzipped(chunks)
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        try:
            async for chunk in chunks:
                if chunk:  # an empty one would end the answer
                    await response.write(chunk)
                self._settling.reached(len(self._labels))
        except ConnectionError:
            log.debug("a scrape was cut off")
        return response

    async def _ready(self, request: web.Request) -> web.Response:
        reasons = self._health.unready()
        status, lines = (503, reasons) if reasons else (200, ["ready"])
        said = "".join(f"{line}\n" for line in (*lines, *self._health.notices()))
        return web.Response(status=status, text=said)

    async def _healthz(self, request: web.Request) -> web.Response:
        """Answer whether the process is worth keeping: one that only catches up is."""
        if self._health.broken is None:
            return web.Response(text="ok\n")
        return web.Response(status=503, text=f"broken: {self._health.broken}\n")


def static_files() -> Iterator[tuple[str, bytes, str]]:
    """Give the page's files: name, content, content type."""
    for file in sorted(files("caughtup.agents").joinpath("static").iterdir(), key=str):
        kind = _KINDS.get(PurePath(file.name).suffix)
        if kind is not None:
            yield file.name, file.read_bytes(), kind


def _serve(body: bytes, kind: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def serve(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=kind, charset="utf-8")

    return serve


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_HEADERS)
