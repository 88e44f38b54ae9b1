"""``/api/groups/GROUP/safe?stop=CLIENT``: whether an instance can be stopped now."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from functools import partial

import msgspec
from aiohttp import web

from caughtup.agents.views.safety import WITHIN_SECONDS, asked_of, etas_of, safety_fields
from caughtup.agents.web.answer import refused
from caughtup.models.errors import CaughtupError
from caughtup.models.state.cluster import ClusterState
from caughtup.models.what_if.application import application_of_group

#: The longest time that may be asked for.
_MOST_SECONDS = 86_400.0
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
        text = request.query.get("within")
        record = self._record(name) if text is None else None
        within = _seconds(text) if text is not None else record or WITHIN_SECONDS
        leaves = request.query.get("leave_group") == "true"
        if client is None or within is None:
            return refused(400, "say which with ?stop=CLIENT, and &within=SECONDS if you like")
        async with self._one:
            group = application_of_group(self._state, name, self._clock())
            if group is None:
                return refused(
                    404, "this is no Kafka Streams application that is known, or it rebalances now"
                )
            etas = etas_of(self._state, name)
            try:
                asked = partial(asked_of, group, client, within, etas, leave_group=leaves)
                safety = await asyncio.to_thread(asked)
            except CaughtupError as error:
                return refused(404, error.message)
        within_from = "asked" if text is not None else "default" if record is None else "record"
        fields = {**safety_fields(group, safety), "within_from": within_from}
        return web.Response(body=msgspec.json.encode(fields), content_type=_JSON)

    def _record(self, group: str) -> float | None:
        """Return for how long a task stood still at most of late, in seconds; None if none did."""
        longest = self._state.recent.stood_still_ms(group, self._clock())
        return None if longest is None else longest / 1_000


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and 0 <= seconds <= _MOST_SECONDS else None
