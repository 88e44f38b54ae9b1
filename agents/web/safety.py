"""``/api/groups/GROUP/safe?stop=CLIENT``: whether an instance can be stopped now."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import msgspec
from aiohttp import web

from caughtup.agents.web.answer import refused
from caughtup.agents.web.door.questions import Questions, Unanswerable, in_thread
from caughtup.models.errors import CaughtupError
from caughtup.models.records.fields import changed
from caughtup.models.state.cluster import ClusterState
from caughtup.models.what_if.question import application_of_group
from caughtup.models.what_if.safety import WITHIN_MS, Safety, safe_to_stop

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
        within = _seconds(text) if text is not None else record or WITHIN_MS / 1_000
        leaves = request.query.get("leave_group") == "true"
        if client is None or within is None:
            return refused(400, "say which with ?stop=CLIENT, and &within=SECONDS if you like")
        try:
            safety = await self._questions.answer(
                ("safe", name, client, within, leaves),
                partial(self._played, name, client, within, leave_group=leaves),
            )
        except Unanswerable as error:
            return refused(error.status, error.why)
        within_from = "asked" if text is not None else "default" if record is None else "record"
        body = msgspec.json.encode(changed(safety, within_from=within_from))
        return web.Response(body=body, content_type=_JSON)

    async def _played(self, name: str, client: str, within: float, *, leave_group: bool) -> Safety:
        group = application_of_group(self._state, name, self._clock())
        if group is None:
            raise Unanswerable(
                404, "this is no Kafka Streams application that is known, or it rebalances now"
            )
        watch = self._state.watches.get(name)
        asked = partial(
            safe_to_stop,
            group,
            client,
            within_ms=round(within * 1_000),
            leave_group=leave_group,
            etas_ms={} if watch is None else watch.etas_ms(),
        )
        try:
            return await in_thread(lambda between: asked(between_steps=between))
        except CaughtupError as error:
            raise Unanswerable(404, error.message) from None

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
