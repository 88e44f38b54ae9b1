"""``/api/groups/GROUP/why``: why a group is as it is, from the service's state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
from aiohttp import web

from caughtup.agents.process.turns import done_in_turns
from caughtup.agents.web.answer import error_response
from caughtup.agents.web.door.questions import Questions, Unanswerable
from caughtup.models.state.cluster import ClusterState
from caughtup.models.why.explain import why_steps
from caughtup.models.why.links import Why

NO_GROUP = "there is no group of this name"


class WhyEndpoint:
    """Answers why a group is as it is, one group at a time."""

    def __init__(self, state: ClusterState, clock: Callable[[], int], questions: Questions) -> None:
        self._state = state
        self._clock = clock
        self._questions = questions

    def add_routes(self, app: web.Application) -> None:
        """Register the endpoint."""
        app.router.add_get(r"/api/groups/{group:[\s\S]+}/why", self._why)

    async def _why(self, request: web.Request) -> web.Response:
        """Answer 200 with the links, 404 if there is no such group."""
        group = request.match_info["group"]
        try:
            found = await self._questions.answer(("why", group), partial(self._explain, group))
        except Unanswerable as error:
            return error_response(error.status, error.why)
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")

    async def _explain(self, group: str) -> Why:
        state, now_ms = self._state, self._clock()
        answered, found = False, None
        with state.faults.isolated("page", group, now_ms):
            found = await done_in_turns(why_steps(state, group, now_ms))
            answered = True
        if not answered:
            raise Unanswerable(500, "the service could not compute this answer: its log says why")
        if found is None:
            raise Unanswerable(404, NO_GROUP)
        return found
