"""The web server: the page, its views, the JSON endpoints, ``/metrics``, ``/ready``, ``/healthz``."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePath
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Middleware
from mode import Service

from caughtup.agents.clock import now_ms
from caughtup.agents.process.health import Health
from caughtup.agents.settings import Settings
from caughtup.agents.web.access import AllowedHosts, Token, web_tls
from caughtup.agents.web.addresses import authority, is_loopback
from caughtup.agents.web.answer import write_pieces
from caughtup.agents.web.door.connections import IDLE_SECONDS, Connections, Listener
from caughtup.agents.web.door.questions import Questions, Slots
from caughtup.agents.web.door.refusals import Malformed, Refusals
from caughtup.agents.web.history import HistoryCharts
from caughtup.agents.web.lines import Lines
from caughtup.agents.web.page_views import ADDRESSES, PageViews, page_handler, requested_view
from caughtup.agents.web.peer_views import PeerViews
from caughtup.agents.web.peers import Peers
from caughtup.agents.web.scrapes import Scrapes
from caughtup.agents.web.served_metrics import ServedMetrics
from caughtup.agents.web.stand_in import StandIn
from caughtup.agents.web.what_if import WhatIfEndpoints
from caughtup.agents.web.why import WhyEndpoints
from caughtup.models.state.cluster import ClusterState

log = logging.getLogger(__name__)

_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_PUSH_SECONDS = 1.0
_STREAMS = 50
#: The most what-if requests under way, of which one is simulated, and how long one waits (s).
_PLAYED, _PLAYED_SECONDS = 5, 1.0
#: The most groups that are asked about at once, see ``WhyEndpoints``.
_ASKED = 20
#: Requested by orchestrators, which have no token; always answered.
_PROBES = frozenset({"/ready", "/healthz"})
#: The headers of every answer.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class WebServer(Service):
    """Serves the page and the metrics on ``web_host:web_port``."""

    logger = logging.getLogger("mode.caughtup")  # of starts and stops

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
        #: The metrics, which others may send elsewhere.
        self.metrics = ServedMetrics(settings, state, health)
        self._refusals = Refusals(health.web_refusals)
        self._streams = Slots("event streams", self._refusals, _STREAMS, retry_seconds=15)
        token = settings.web_token_file
        self._token = None if token is None else Token(token, _PROBES)
        self._peers = Peers(settings, state.held, self._token, self._refusals)
        self._peer_views = PeerViews(self._peers, state.held, clock)
        has_history = settings.history_uri is not None
        self._views = PageViews(
            state,
            health,
            clock,
            self.metrics.labels.limited,
            settings.links(),
            self._refusals,
            self._peer_views,
            has_history=has_history,
        )
        self._tls = web_tls(settings)
        self._runner: web.AppRunner | None = None
        self._listener: Listener | None = None
        self._stand_in: StandIn | None = None
        #: The actual port, also if the setting is 0.
        self.port = settings.web_port

    @property
    def address(self) -> str:
        """The URL at which other instances reach this one."""
        settings = self._settings
        if settings.web_address is not None:
            return settings.web_address.rstrip("/")
        everywhere = settings.web_host in ("", "0.0.0.0", "::")
        host = socket.gethostname() if everywhere else settings.web_host
        scheme = "http" if self._tls is None else "https"
        return f"{scheme}://{authority(host, self.port)}"

    async def on_start(self) -> None:
        """Listen. Raises OSError when the port is taken."""
        settings = self._settings
        own = urlsplit(settings.web_address or "").hostname
        names = (*settings.web_allowed_hosts, *([own] if own else []))
        hosts = AllowedHosts(settings.web_host, names)
        connections = Connections(_PROBES, self._refusals)
        checks: list[Middleware] = [connections.check, hosts.check]
        if self._token is not None:
            checks.append(self._token.check)
        checks.append(self._peers.check)
        self._runner = web.AppRunner(
            self._application(checks),
            access_log=None,
            logger=Malformed.logger(self._refusals),
            handler_cancellation=True,  # no work for clients that left
            shutdown_timeout=1.0,
            keepalive_timeout=IDLE_SECONDS,
        )
        await self._runner.setup()
        connections.server = self._runner.server
        self._listener = Listener(connections, self._tls)
        await self._listener.start(settings.web_host, settings.web_port)
        self._stand_in = StandIn(self._listener.sockets, self._tls, self._health.pulses)
        self.port = self._listener.sockets[0].getsockname()[1]
        scheme = "http" if self._tls is None else "https"
        place = authority(settings.web_host, self.port)
        log.info("the page: %s://%s/", scheme, place)
        if missing := self._missing_protection():
            log.warning(
                "anybody who reaches %s %s: set %s",
                place,
                "can read everything about groups and hosts",
                " and ".join(missing),
            )

    async def on_stop(self) -> None:
        """Close the listener and its connections."""
        if self._stand_in is not None:
            await asyncio.to_thread(self._stand_in.stop)
        if self._listener is not None:
            self._listener.stop()
        if self._runner is not None:
            await self._runner.cleanup()
        self._peer_views.close()
        await self._peers.close()

    def _application(self, checks: Sequence[Middleware]) -> web.Application:
        app = web.Application(middlewares=checks)
        for name, body, kind in static_files():
            if name != "index.html":
                app.router.add_get(f"/{name}", _serve(body, kind))
                continue
            for address, depth in ADDRESSES.items():
                app.router.add_get(address, page_handler(body, depth))
        # A HEAD request has no body whose write would fail once the client has left.
        app.router.add_get("/api/events", self._events, allow_head=False)
        self._views.add_routes(app)
        state, clock, refusals = self._state, self._clock, self._refusals
        questions = Questions(
            "questions", refusals, most=_PLAYED, wait_seconds=_PLAYED_SECONDS, retry_seconds=5
        )
        Lines(state, clock, refusals, self._peers).add_routes(app)
        WhatIfEndpoints(state, clock, questions).add_routes(app)
        causes = Questions(
            "questions", refusals, most=_ASKED, wait_seconds=_PLAYED_SECONDS, retry_seconds=5
        )
        WhyEndpoints(state, clock, causes).add_routes(app)
        HistoryCharts(self._settings, clock, refusals).add_routes(app)
        Scrapes(self.metrics, state, clock, refusals).add_routes(app)
        app.router.add_get("/ready", self._ready)
        app.router.add_get("/healthz", self._healthz)
        app.on_response_prepare.append(_add_headers)
        return app

    def _missing_protection(self) -> list[str]:
        """Return the missing settings that listening on a network needs."""
        if is_loopback(self._settings.web_host):
            return []
        settings = {"web_tls_certificate": self._tls, "web_token_file": self._token}
        return [name for name, set_ in settings.items() if set_ is None]

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Push the requested view as server-sent events, once a second."""
        view = requested_view(request)
        if view is None:
            raise web.HTTPBadRequest(text="there is no such view\n")
        with self._streams.taken(request):
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            try:
                while not self.should_stop:
                    with suppress(web.HTTPServiceUnavailable):  # the next may come in time
                        await write_pieces(response, await self._views.event(view))
                    await self.sleep(_PUSH_SECONDS)  # or until the server stops
            except (ConnectionError, asyncio.CancelledError):
                pass  # the client left, or the server stops
            return response

    async def _ready(self, request: web.Request) -> web.Response:
        """Answer 200 on the active instance once it has read its topics; with ?standby, on any."""
        reasons = self._health.unready(may_stand_by="standby" in request.query)
        lines = reasons or self._health.unready() or ["ready"]
        text = "".join(f"{line}\n" for line in (*lines, *self._health.notices()))
        return web.Response(status=503 if reasons else 200, text=text)

    async def _healthz(self, request: web.Request) -> web.Response:
        """Answer 200 unless the process should be restarted; it may still be reading its topics."""
        reasons = self._health.unhealthy()
        lines = *(reasons or ["ok"]), *self._health.pulses.last_turns()
        text = "".join(f"{line}\n" for line in lines)
        return web.Response(status=503 if reasons else 200, text=text)


def static_files() -> Iterator[tuple[str, bytes, str]]:
    """Yield the page's files, with folders: name, content, content type."""
    yield from _files_of(files("caughtup.agents.web").joinpath("static"), "")


def _files_of(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes, str]]:
    for file in sorted(folder.iterdir(), key=str):
        kind = _KINDS.get(PurePath(file.name).suffix)
        if file.is_dir():
            yield from _files_of(file, f"{prefix}{file.name}/")
        elif kind is not None:
            yield f"{prefix}{file.name}", file.read_bytes(), kind


def _serve(body: bytes, kind: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def serve(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=kind, charset="utf-8")

    return serve


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
