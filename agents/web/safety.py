"""``/api/groups/GROUP/safe?stop=CLIENT``: whether an instance can be stopped now."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial

import msgspec
from aiohttp import web

from caughtup.agents.views.safety import asked_of, etas_of, safety_fields
from caughtup.models.errors import CaughtupError
from caughtup.models.state.cluster import ClusterState
from caughtup.models.what_if.question import group_of

#: A task may stand still for so long, unless told otherwise, in seconds; and at most.
WITHIN_SECONDS, _MOST_SECONDS = 60.0, 86_400.0
_JSON = "application/json"


class SafeToStop:
    """Plays the stop of an instance when asked: in a thread, one after the other."""

    def __init__(self, state: ClusterState, clock: Callable[[], int]) -> None:
        self._state = state
        self._clock = clock
        self._one = asyncio.Lock()

    def add_routes(self, app: web.Application) -> None:
        """Add what it answers to an application."""
        app.router.add_get(r"/api/groups/{group:[\s\S]+}/safe", self._safe)

    async def _safe(self, request: web.Request) -> web.Response:
        """Answer 200 with ``safe`` true or false, 404 where there is no such group or client."""
        name, client = request.match_info["group"], request.query.get("stop")
        within = _seconds(request.query.get("within"))
        leaves = request.query.get("leave_group") == "true"
        if client is None or within is None:
            return _refused(400, "say which with ?stop=CLIENT, and &within=SECONDS if you like")
        async with self._one:
            group = group_of(self._state, name, self._clock())
            if group is None:
                return _refused(404, "this is no Kafka Streams application whose leader assigns")
            etas = etas_of(self._state, name)
            try:
                asked = partial(asked_of, group, client, within, etas, leave_group=leaves)
                safety = await asyncio.to_thread(asked)
            except CaughtupError as error:
                return _refused(404, error.message)
        return web.Response(body=msgspec.json.encode(safety_fields(safety)), content_type=_JSON)


def _seconds(text: str | None) -> float | None:
    if text is None:
        return WITHIN_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and 0 <= seconds <= _MOST_SECONDS else None


def _refused(status: int, why: str) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode({"error": why}), content_type=_JSON)
