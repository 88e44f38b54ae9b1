"""``/api/groups/GROUP/safe`` and ``/cost``: what stopping or adding instances would do."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import msgspec
from aiohttp import web

from caughtup.agents.web.answer import error_response, parse_count
from caughtup.agents.web.door.questions import Questions, Unanswerable, in_thread
from caughtup.models.errors import CaughtupError
from caughtup.models.records.fields import changed
from caughtup.models.state.cluster import ClusterState
from caughtup.models.what_if.adding import CostOfAdding, cost_of_adding
from caughtup.models.what_if.question import application_of_group, group_of
from caughtup.models.what_if.safety import WITHIN_MS, Safety, safe_to_stop

#: The most instances that ``/cost`` adds, and the longest time that ``/safe`` takes, in seconds.
_MOST_ADDED, _MOST_SECONDS = 100, 86_400.0
_JSON = "application/json"


class WhatIfEndpoints:
    """Simulates a change to an application in a thread, one change at a time."""

    def __init__(self, state: ClusterState, clock: Callable[[], int], questions: Questions) -> None:
        self._state = state
        self._clock = clock
        self._questions = questions

    def add_routes(self, app: web.Application) -> None:
        """Register the endpoints."""
        app.router.add_get(r"/api/groups/{group:[\s\S]+}/safe", self._safe)
        app.router.add_get(r"/api/groups/{group:[\s\S]+}/cost", self._cost)

    async def _safe(self, request: web.Request) -> web.Response:
        """Answer 200 with ``safe`` true or false, 404 if there is no such group or client."""
        name, client = request.match_info["group"], request.query.get("stop")
        text = request.query.get("within")
        record = self._longest_still_seconds(name) if text is None else None
        within = _seconds(text) if text is not None else record or WITHIN_MS / 1_000
        leaves = request.query.get("leave_group") == "true"
        if client is None or within is None:
            return error_response(
                400,
                "name the instance with ?stop=CLIENT, and optionally the allowed time with &within=SECONDS",
            )
        try:
            safety = await self._questions.answer(
                ("safe", name, client, within, leaves),
                partial(self._simulate_stop, name, client, within, leave_group=leaves),
            )
        except Unanswerable as error:
            return error_response(error.status, error.why)
        within_from = "asked" if text is not None else "default" if record is None else "record"
        body = msgspec.json.encode(changed(safety, within_from=within_from))
        return web.Response(body=body, content_type=_JSON)

    async def _simulate_stop(
        self, name: str, client: str, within: float, *, leave_group: bool
    ) -> Safety:
        group = application_of_group(self._state, name, self._clock())
        if group is None:
            raise Unanswerable(
                404,
                "this is not a Kafka Streams application that the service knows, or it is rebalancing",
            )
        watch = self._state.watches.get(name)
        simulate = partial(
            safe_to_stop,
            group,
            client,
            within_ms=round(within * 1_000),
            leave_group=leave_group,
            etas_ms={} if watch is None else watch.etas_ms(),
        )
        try:
            return await in_thread(lambda between: simulate(between_steps=between))
        except CaughtupError as error:
            raise Unanswerable(404, error.message) from None

    def _longest_still_seconds(self, group: str) -> float | None:
        """Return the longest recent time that a task was not processed, in seconds, if any was."""
        longest_ms = self._state.recent.stood_still_ms(group, self._clock())
        return None if longest_ms is None else longest_ms / 1_000

    async def _cost(self, request: web.Request) -> web.Response:
        """Answer 200 with the costs of both plans, 404 if there is no such application."""
        add = parse_count(request.query.get("add", "1"), _MOST_ADDED)
        if add is None:
            return error_response(400, f"say how many with ?add=N, from 1 to {_MOST_ADDED}")
        name = request.match_info["group"]
        try:
            cost = await self._questions.answer(
                ("cost", name, add), partial(self._compute_cost, name, add)
            )
        except Unanswerable as error:
            return error_response(error.status, error.why)
        return web.Response(body=msgspec.json.encode(cost), content_type=_JSON)

    async def _compute_cost(self, name: str, add: int) -> CostOfAdding:
        group = group_of(self._state, name, self._clock())
        if group is None:
            raise Unanswerable(
                404, "this is not a Kafka Streams application whose leader assigns its tasks"
            )
        try:
            return await in_thread(partial(cost_of_adding, group, add))
        except CaughtupError as error:
            raise Unanswerable(404, error.message) from None


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and 0 <= seconds <= _MOST_SECONDS else None
