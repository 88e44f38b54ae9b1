"""``/api/groups/GROUP/why`` and ``/explanation``: why a group is as it is, and who has what and why."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import msgspec
from aiohttp import web

from caughtup.agents.process.turns import done_in_turns
from caughtup.agents.web.answer import error_response
from caughtup.agents.web.door.questions import Questions, Unanswerable
from caughtup.models.shown.consumer_group import ConsumerGroupExplanation, begin_explanation
from caughtup.models.shown.sentences import decided_sentences, sentences
from caughtup.models.state.cluster import ClusterState
from caughtup.models.why.explain import why_steps
from caughtup.models.why.links import Why

Answer = TypeVar("Answer")
NO_GROUP = "there is no group of this name"
NO_CONSUMERS = "there is no group of consumers of this name that has members"
_FAILED = "the service could not compute this answer: its log says why"


class WhyEndpoints:
    """Answers questions about why a group is as it is, one group at a time."""

    def __init__(self, state: ClusterState, clock: Callable[[], int], questions: Questions) -> None:
        self._state = state
        self._clock = clock
        self._questions = questions

    def add_routes(self, app: web.Application) -> None:
        """Register the endpoints."""
        app.router.add_get(r"/api/groups/{group:[\s\S]+}/why", self._why)
        app.router.add_get(r"/api/groups/{group:[\s\S]+}/explanation", self._explanation)

    async def _why(self, request: web.Request) -> web.Response:
        """Answer 200 with the links, 404 if there is no such group."""
        group = request.match_info["group"]
        return await self._answer(("why", group), partial(self._links, group))

    async def _explanation(self, request: web.Request) -> web.Response:
        """Answer 200 with the explanation, 404 if there is no such group of consumers with members."""
        group = request.match_info["group"]
        return await self._answer(("explanation", group), partial(self._explain, group))

    async def _answer(
        self, question: tuple[str, str], ask: Callable[[], Awaitable[object]]
    ) -> web.Response:
        try:
            found = await self._questions.answer(question, ask)
        except Unanswerable as error:
            return error_response(error.status, error.why)
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")

    async def _explain(self, group: str) -> ConsumerGroupExplanation:
        async def complete() -> ConsumerGroupExplanation | None:
            begun = begin_explanation(self._state, group)
            if begun is None:
                return None
            found = await asyncio.to_thread(begun.complete)
            found.says = [*decided_sentences(found), *sentences(found, self._clock())]
            return found

        return await self._found(group, complete, NO_CONSUMERS)

    async def _links(self, group: str) -> Why:
        now_ms = self._clock()
        steps = partial(why_steps, self._state, group, now_ms)
        return await self._found(group, lambda: done_in_turns(steps()), NO_GROUP)

    async def _found(
        self, group: str, ask: Callable[[], Awaitable[Answer | None]], missing: str
    ) -> Answer:
        """Return an answer about a group. Raises Unanswerable: ``missing`` if it is None."""
        answered, found = False, None
        with self._state.faults.isolated("page", group, self._clock()):
            found = await ask()
            answered = True
        if not answered:
            raise Unanswerable(500, _FAILED)
        if found is None:
            raise Unanswerable(404, missing)
        return found
