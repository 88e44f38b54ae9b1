"""``/api/groups/GROUP/cost?add=N``: what more instances of an application would cost."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import msgspec
from aiohttp import web

from caughtup.agents.web.answer import count_asked, refused
from caughtup.agents.web.door.questions import Questions, Unanswerable, in_thread
from caughtup.models.errors import CaughtupError
from caughtup.models.state.cluster import ClusterState
from caughtup.models.what_if.adding import cost_of_adding
from caughtup.models.what_if.question import LeaderAssignedGroup, group_of

#: More instances than these are not added at once.
MOST = 100
_JSON = "application/json"


class Adding:
    """Computes what more instances would cost when asked, in a thread."""

    def __init__(self, state: ClusterState, clock: Callable[[], int], questions: Questions) -> None:
        self._state = state
        self._clock = clock
        self._questions = questions

    def add_routes(self, app: web.Application) -> None:
        """Add what it answers to an application."""
        app.router.add_get(r"/api/groups/{group:[\s\S]+}/cost", self._cost)

    async def _cost(self, request: web.Request) -> web.Response:
        """Answer 200 with both costs, 404 where there is no such application."""
        add = count_asked(request.query.get("add", "1"), MOST)
        if add is None:
            return refused(400, f"say how many with ?add=N, from 1 to {MOST}")
        name = request.match_info["group"]
        try:
            body = await self._questions.answer(
                ("cost", name, add), partial(self._computed, name, add)
            )
        except Unanswerable as error:
            return refused(error.status, error.why)
        return web.Response(body=body, content_type=_JSON)

    async def _computed(self, name: str, add: int) -> bytes:
        group = group_of(self._state, name, self._clock())
        if group is None:
            raise Unanswerable(404, "this is no Kafka Streams application whose leader assigns")
        try:
            return await in_thread(partial(_told, group, add))
        except CaughtupError as error:
            raise Unanswerable(404, error.message) from None


def _told(group: LeaderAssignedGroup, add: int, between_steps: Callable[[], None]) -> bytes:
    return msgspec.json.encode(cost_of_adding(group, add, between_steps))
