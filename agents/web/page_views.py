"""The page's addresses, and the view of each: pushed as events, or answered once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import NamedTuple

import msgspec
from aiohttp import web
from yarl import URL

from caughtup.agents.page_columns import DECLARED
from caughtup.agents.process.health import Health
from caughtup.agents.process.turns import done_in_turns
from caughtup.agents.web.addresses import FORWARDED
from caughtup.agents.web.answer import error_response, send_chunks
from caughtup.agents.web.door.questions import Questions, Slots
from caughtup.agents.web.door.refusals import Refusals
from caughtup.agents.web.page.group import group_steps
from caughtup.agents.web.page.head import Head
from caughtup.agents.web.page.merged import merge_steps, recent_steps
from caughtup.agents.web.page.overview import overview_steps
from caughtup.agents.web.page.parts import (
    connect_steps,
    health_steps,
    reassignments_steps,
    recent_of_cluster,
    recent_of_group,
    streams_steps,
    transactions_steps,
    whole_steps,
)
from caughtup.agents.web.peer_views import PeerViews
from caughtup.models.records.fields import ABSENT
from caughtup.models.sharing import MOST_INSTANCES
from caughtup.models.shown.groups import KeptGroupLines
from caughtup.models.state.cluster import ClusterState

SCHEMA = 2
#: Listeners share a view for this long, at least. If making it takes long, as of a large cluster,
#: they share it for four times that: so one page takes a fifth of a core at most.
_SHARED_SECONDS, _SHARED_TIMES = 0.5, 4
#: The most views that are kept; there are no more listeners.
_KEPT = 64
#: Views are made one after the other; a request that waits longer than this gets 503.
_WAIT_SECONDS = 10.0
#: The most answers with the whole state at once: each is held until its client has read it.
_STATES = 8
_MOST_CHARACTERS = 1_000
_JSON = "application/json"
_DECLARED = msgspec.Raw(msgspec.json.encode(DECLARED))
_PARTS: dict[str, Callable[[ClusterState, Health, int], Generator[None, None, Head]]] = {
    "reassignments": reassignments_steps,
    "transactions": transactions_steps,
    "connect": connect_steps,
    "streams": streams_steps,
    "health": health_steps,
}
#: The views with parts of the other instances; what the other views show, all instances know.
_MERGED = frozenset({"state", "overview", "transactions", "connect", "health"})
#: The page's addresses, and how many folders deep each is, for the page's relative links.
ADDRESSES = {
    "/": 0,
    r"/groups/{name:[\s\S]+}": 1,
    **{f"/{part}": 0 for part in _PARTS},
}


class View(NamedTuple):
    """A part of the page, a group, or the groups whose names contain ``find``.

    ``own``: of this instance's groups only; another instance asks.
    """

    view: str
    group: str = ""
    find: str = ""
    own: bool = False

    def path(self) -> URL:
        """Return the relative URL at which another instance is asked for it."""
        if self.view == WHOLE.view:
            return URL("/api/state")
        find = {"find": self.find} if self.find else {}
        return URL("/api/view").with_query(view=self.view, **find)


class _Made(NamedTuple):
    """A view as JSON, and how long it waited for other instances (s) once it was made itself."""

    json: bytes
    waited: float


#: The whole cluster in one answer, as before there were views.
WHOLE = View("state")


class PageViews:
    """Serves views of the state, each with ``links``, addresses of other pages.

    ``has_history`` is whether there are charts of more than the last hours.
    """

    def __init__(
        self,
        state: ClusterState,
        health: Health,
        clock: Callable[[], int],
        limited: Callable[[], int],
        links: dict[str, str],
        refusals: Refusals,
        peers: PeerViews,
        *,
        has_history: bool = False,
    ) -> None:
        self._state = state
        self._peers = peers
        self._health = health
        self._clock = clock
        self._limited = limited
        self._links = links
        self._has_history = has_history
        self._making = Questions(
            "views", refusals, most=_KEPT, wait_seconds=_WAIT_SECONDS, retry_seconds=5
        )
        # Not among the former: instances that wait for each other's part would wait for ever. All at
        # once: one that waits for a silent instance holds no other back.
        self._merging = Questions(
            "views",
            refusals,
            most=_KEPT,
            wait_seconds=_WAIT_SECONDS,
            retry_seconds=5,
            at_once=_KEPT,
        )
        self._one_merge = asyncio.Lock()
        self._states = Slots("whole states", refusals, _STATES, retry_seconds=5)
        self._states_of_instances = Slots("whole states", refusals, MOST_INSTANCES, retry_seconds=5)
        self._kept: dict[View, tuple[float, bytes]] = {}
        self._lines = KeptGroupLines(state)

    def add_routes(self, app: web.Application) -> None:
        """Register the endpoints, except that of events."""
        app.router.add_get("/api/state", self._view)
        app.router.add_get("/api/view", self._view)
        app.router.add_get("/api/recent", self._recent)
        app.router.add_get(r"/api/groups/{group:[\s\S]+}/recent", self._recent)

    async def event(self, view: View) -> bytes:
        """Return a view as a server-sent event, shared by its listeners for a while."""
        until, made = self._kept.get(view, (0.0, b""))
        began = time.monotonic()
        if began > until:
            json, waited = await self._made(view)
            made = b"event: state\ndata: %s\n\n" % json
            self._kept.pop(view, None)
            while len(self._kept) >= _KEPT:
                del self._kept[next(iter(self._kept))]
            now = time.monotonic()
            shared = max(_SHARED_SECONDS, _SHARED_TIMES * (now - began - waited))
            self._kept[view] = (now + shared, made)
        return made

    async def _made(self, view: View) -> _Made:
        """Return a view, made once for simultaneous requests."""
        if view.own or view.view not in _MERGED or not self._peers.are_there:
            json = await self._making.answer((view, bytes), partial(self._make, view))
            return _Made(json, 0.0)
        return await self._merging.answer(view, partial(self._merge, view))

    async def _make(self, view: View) -> bytes:
        return msgspec.json.encode(await self._shown(view))

    async def _merge(self, view: View) -> _Made:
        """Return a view with the parts of the other instances."""

        async def own() -> tuple[Head, float]:
            shown = await self._making.answer((view, Head), partial(self._shown, view))
            return shown, time.monotonic()

        asked = self._peers.parts(view.path())
        (shown, made_at), (instances, parts) = await asyncio.gather(own(), asked)
        waited = time.monotonic() - made_at
        shown.instances = instances
        async with self._one_merge:
            await done_in_turns(merge_steps(shown, parts))
            return _Made(msgspec.json.encode(shown), waited)

    async def _shown(self, view: View) -> Head:
        shown = await done_in_turns(self._steps(view))
        if view.view != WHOLE.view:
            shown.schema, shown.view, shown.links = SCHEMA, view.view, self._links
            shown.declared, shown.history = _DECLARED, self._has_history or ABSENT
        return shown

    def _steps(self, view: View) -> Generator[None, None, Head]:
        state, health, now = self._state, self._health, self._clock()
        if view.view == WHOLE.view:
            return whole_steps(state, health, now, self._limited(), self._lines)
        if view.view == "overview":
            return overview_steps(state, health, now, view.find, self._limited(), self._lines)
        if view.view == "group":
            return group_steps(state, health, now, view.group)
        return _PARTS[view.view](state, health, now)

    async def _view(self, request: web.Request) -> web.StreamResponse:
        view = requested_view(request)
        if view is None:
            return error_response(
                400,
                "say what: ?view=overview, reassignments, connect, streams or health, or ?group=NAME",
            )
        headers = {"Content-Type": f"{_JSON}; charset=utf-8"}
        if view.view != WHOLE.view:
            return await send_chunks(request, headers, [(await self._made(view)).json])
        with (self._states_of_instances if view.own else self._states).taken(request):
            return await send_chunks(request, headers, [(await self._made(view)).json])

    async def _recent(self, request: web.Request) -> web.Response:
        group = request.match_info.get("group")
        now = self._clock()
        if group is not None:
            described = recent_of_group(self._state, group, now)
        else:
            described = recent_of_cluster(self._state, now)
            if FORWARDED not in request.headers and self._peers.are_there:
                _, parts = await self._peers.parts(URL("/api/recent"))
                await done_in_turns(recent_steps(described, parts))
        return web.Response(body=msgspec.json.encode(described), content_type=_JSON)


def requested_view(request: web.Request) -> View | None:
    """Return the view in a request's query, WHOLE without a query, None if there is no such view."""
    own = FORWARDED in request.headers
    if not request.query:
        return WHOLE._replace(own=own)
    view, group = request.query.get("view"), request.query.get("group")
    find = request.query.get("find", "")
    if group is not None and view is None and len(group) <= _MOST_CHARACTERS:
        return View("group", group=group)
    if view == "overview" and group is None and len(find) <= _MOST_CHARACTERS:
        return View("overview", find=find, own=own)
    return View(view, own=own) if view in _PARTS and group is None else None


def page_handler(body: bytes, depth: int) -> Callable[[web.Request], Awaitable[web.Response]]:
    """Return the handler of the page at an address ``depth`` folders deep."""
    base = b'<head>\n<base href="%s">' % (b"../" * depth)
    based = body.replace(b"<head>", base, 1) if depth else body

    async def serve(request: web.Request) -> web.Response:
        return web.Response(body=based, content_type="text/html", charset="utf-8")

    return serve
