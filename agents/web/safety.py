"""``/api/groups/GROUP/safe?stop=CLIENT``: whether an instance can be stopped now."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from aiohttp import web

from caughtup.agents.views.safety import WITHIN_SECONDS, asked_of, etas_of, safety_fields
from caughtup.agents.web.answer import refused
from caughtup.agents.web.door.questions import Questions, Unanswerable, in_thread
from caughtup.models.errors import CaughtupError
from caughtup.models.state.cluster import ClusterState
from caughtup.models.what_if.question import application_of_group

#: The longest time that may be asked for.
_MOST_SECONDS = 86_400.0
_JSON = "application/json"


class SafeToStop:
    """Plays the stop of an instance when asked, in a thread."""

    def __init__(self, state: ClusterState, clock: Callable[[], int], questions: Questions) -> None:
        self._state = state
        self._clock = clock
        self._questions = questions

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
        try:
            fields = await self._questions.answer(
                ("safe", name, client, within, leaves),
                partial(self._played, name, client, within, leave_group=leaves),
            )
        except Unanswerable as error:
            return refused(error.status, error.why)
        within_from = "asked" if text is not None else "default" if record is None else "record"
        body = msgspec.json.encode({**fields, "within_from": within_from})
        return web.Response(body=body, content_type=_JSON)

    async def _played(
        self, name: str, client: str, within: float, *, leave_group: bool
    ) -> dict[str, Any]:
        group = application_of_group(self._state, name, self._clock())
        if group is None:
            raise Unanswerable(
                404, "this is no Kafka Streams application that is known, or it rebalances now"
            )
        etas = etas_of(self._state, name)
        asked = partial(asked_of, group, client, within, etas, leave_group=leave_group)
        try:
            safety = await in_thread(lambda between: asked(between_steps=between))
        except CaughtupError as error:
            raise Unanswerable(404, error.message) from None
        return safety_fields(group, safety)

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
